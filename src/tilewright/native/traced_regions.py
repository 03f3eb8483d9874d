"""Traced regions: calls and chunks that run as always, and leave behind when each ran on which thread.

`@traced` has the signature of `@parallel`, which it calls: a program that is to be traced gets it in that one's place,
and pays two looks at the clock and six words a chunk. `@entered` calls a program's entry and notes the call the same
way. What they leave goes to a ring in memory that Python reads when it comes by; no other program knows of it.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.native.loader import Loaded, load
from tilewright.native.threads import emitted

CAPACITY = 1 << 16
"""How many calls and chunks a ring holds; where more come before anybody reads it, the oldest are lost."""
PAUSE = 500_000_000
"""Nanoseconds between two calls in which whoever looks at a timeline is taken to do so."""
CALL = -1
"""Stands for the number of a chunk in what is left of a call."""


class _Head(IntEnum):
    """The words at the head of a ring."""

    ROWS = 0
    COUNT = 1
    """How many rows were ever begun."""
    TAKEN = 2
    """How many were read."""
    LAST = 3
    """When the last call ended, in nanoseconds of the monotonic clock."""


WIDTH = 6
"""The words of a row: its number, written last and counted from 1, code, chunk, begin, end, thread."""

TEXT = f"""
@ring = dso_local global ptr null, align 8
declare void @parallel(ptr, ptr, i64, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()

define internal i64 @now() nounwind {{
entry:
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}

define internal void @note(ptr %code, i64 %chunk, i64 %begin, i64 %end) nounwind {{
entry:
  %ring = load ptr, ptr @ring
  %rows = load ptr, ptr %ring
  %count = getelementptr i64, ptr %ring, i64 {_Head.COUNT}
  %slot = atomicrmw add ptr %count, i64 1 monotonic
  %place = and i64 %slot, {CAPACITY - 1}
  %word = mul i64 %place, {WIDTH}
  %row = getelementptr i64, ptr %rows, i64 %word
  %at.1 = getelementptr i64, ptr %row, i64 1
  store ptr %code, ptr %at.1
  %at.2 = getelementptr i64, ptr %row, i64 2
  store i64 %chunk, ptr %at.2
  %at.3 = getelementptr i64, ptr %row, i64 3
  store i64 %begin, ptr %at.3
  %at.4 = getelementptr i64, ptr %row, i64 4
  store i64 %end, ptr %at.4
  %at.5 = getelementptr i64, ptr %row, i64 5
  %self = call i64 @pthread_self()
  store i64 %self, ptr %at.5
  %number = add i64 %slot, 1
  store atomic i64 %number, ptr %row release, align 8
  ret void
}}

define internal void @chunk(ptr %region, i64 %chunk) nounwind {{
entry:
  %fn = load ptr, ptr %region
  %data.at = getelementptr i64, ptr %region, i64 1
  %data = load ptr, ptr %data.at
  %begin = call i64 @now()
  call void %fn(ptr %data, i64 %chunk)
  %end = call i64 @now()
  call void @note(ptr %fn, i64 %chunk, i64 %begin, i64 %end)
  ret void
}}

define void @traced(ptr %fn, ptr %data, i64 %chunks, ptr %context) nounwind {{
entry:
  %region = alloca [2 x i64]
  store ptr %fn, ptr %region
  %data.at = getelementptr i64, ptr %region, i64 1
  store ptr %data, ptr %data.at
  call void @parallel(ptr @chunk, ptr %region, i64 %chunks, ptr %context)
  ret void
}}

define void @entered(ptr %launch, ptr %context, ptr %program) nounwind {{
entry:
  %begin = call i64 @now()
  call void %program(ptr %launch, ptr %context)
  %end = call i64 @now()
  call void @note(ptr %program, i64 {CALL}, i64 %begin, i64 %end)
  %ring = load ptr, ptr @ring
  %last = getelementptr i64, ptr %ring, i64 {_Head.LAST}
  store i64 %end, ptr %last
  ret void
}}

define i64 @ready() nounwind {{
entry:
  %ring = load ptr, ptr @ring
  %count.at = getelementptr i64, ptr %ring, i64 {_Head.COUNT}
  %count = load i64, ptr %count.at
  %taken.at = getelementptr i64, ptr %ring, i64 {_Head.TAKEN}
  %taken = load i64, ptr %taken.at
  %last.at = getelementptr i64, ptr %ring, i64 {_Head.LAST}
  %last = load i64, ptr %last.at
  %now = call i64 @now()
  %since = sub i64 %now, %last
  %soon = icmp slt i64 %since, {PAUSE}
  %waiting = sub i64 %count, %taken
  %room = icmp slt i64 %waiting, {CAPACITY // 2}
  %both = and i1 %soon, %room
  %answer = zext i1 %both to i64
  ret i64 %answer
}}
"""


class Ring:
    """Where traced calls and chunks leave their rows."""

    def __init__(self) -> None:
        self._rows: Any = np.zeros((CAPACITY, WIDTH), np.int64)
        self._head: Any = (ctypes.c_int64 * len(_Head))(self._rows.ctypes.data, 0, 0, 0)
        self.address = ctypes.addressof(self._head)

    @property
    def last(self) -> int:
        """When the last call ended, in nanoseconds of the monotonic clock."""
        return self._head[_Head.LAST]

    @last.setter
    def last(self, time: int) -> None:
        self._head[_Head.LAST] = max(time, self._head[_Head.LAST])

    def taken(self) -> tuple[Any, int]:
        """Return what was left since the last time, rows of (code, chunk, begin, end, thread), and how many are lost.

        Times are nanoseconds of the monotonic clock. What is being written at this moment is left for the next time.
        """
        count: int = self._head[_Head.COUNT]
        taken: int = self._head[_Head.TAKEN]
        first = max(taken, count - CAPACITY)
        numbers = np.arange(first, count)
        rows = self._rows[numbers % CAPACITY]
        whole = rows[:, 0] == numbers + 1
        until = len(rows) if whole.all() else int(whole.argmin())
        self._head[_Head.TAKEN] = first + until
        return rows[:until, 1:], first - taken


class Recorder:
    """Code that runs chunks as some other does, and entries, and leaves in a ring when each of them ran."""

    def __init__(self, ring: Ring, parallel: int) -> None:
        self.loaded: Loaded = load(_object(), {"parallel": parallel}).pin()
        ctypes.c_int64.from_address(self.loaded.address("ring")).value = ring.address
        self.address, self.entered, self.ready = map(self.loaded.address, ("traced", "entered", "ready"))
        """Where a program finds it, what calls an entry, and what tells whether that may go on without Python."""
        self.enter = self.loaded.function("entered", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._ring = ring


@cache
def _object() -> bytes:
    return emitted(TEXT)
