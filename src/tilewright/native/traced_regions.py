"""Traced regions: calls and chunks that run as always, and leave behind when each ran on which thread.

`@traced` has the signature of `@parallel`: a program that is to be traced gets it in that one's place. It has that run
one member on each thread, which claim the chunks, so that on its thread a chunk begins when the one before it ends: a
chunk pays one look at the counter and five words, in a row of a ring that is taken for all of them at once. `@entered`
calls a program's entry and notes the call the same way. Python reads the ring when it comes by; no other program knows
of it.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.native.assemble import assemble
from tilewright.native.counters import Reading, counter, reading
from tilewright.native.loader import Loaded, load
from tilewright.native.target import host

CAPACITY = 1 << 16
"""How many calls and chunks a ring holds; where more come before anybody reads it, the oldest are lost."""
PAUSE = 500_000_000
"""Nanoseconds between two looks of Python at a ring while calls are made."""
CALL = -1
"""Stands for the number of a chunk in what is left of a call."""


class _Head(IntEnum):
    """The words at the head of a ring."""

    ROWS = 0
    COUNT = 1
    """How many rows were ever begun."""
    TAKEN = 2
    """How many were read."""
    LOOKED = 3
    """When Python was here, in ticks of the counter."""
    PATIENCE = 4
    """How many ticks later it wants to be asked again."""


WIDTH = 5
"""The words of a row: its number, counted from 1, and above it that of the chunk, which are written last; code, begin,
end, thread."""
NUMBERS = 1 << 32
"""Numbers of rows begin anew here."""


def _noted(code: str, chunk: str, begin: str, end: str, thread: str) -> str:
    """Return what fills the row of `%slot`, as LLVM IR."""
    words = (f"ptr {code}", f"i64 {begin}", f"i64 {end}", f"i64 {thread}")
    stores = "".join(
        f"""
  %row.{at} = getelementptr i64, ptr %row, i64 {at}
  store {word}, ptr %row.{at}"""
        for at, word in enumerate(words, start=1)
    )
    return f"""{stores.lstrip()}
  %next.slot = add i64 %slot, 1
  %number = and i64 %next.slot, {NUMBERS - 1}
  %above = shl i64 {chunk}, 32
  %both = or i64 %above, %number
  store atomic i64 %both, ptr %row release, align 8"""


_ROW = f"""%place = and i64 %slot, {CAPACITY - 1}
  %word = mul i64 %place, {WIDTH}
  %row = getelementptr i64, ptr %rows, i64 %word"""
"""Where the row of a slot lies."""

_RING = f"""%ring = load ptr, ptr @ring
  %rows = load ptr, ptr %ring
  %count.at = getelementptr i64, ptr %ring, i64 {_Head.COUNT}"""


_ALONE = """%chunk = load i64, ptr %next.at
  %following = add i64 %chunk, 1
  store i64 %following, ptr %next.at"""
"""How the next chunk is claimed where there is one thread, which need not be careful."""


def _member(name: str, claim: str, how: Reading) -> str:
    """Return what runs chunks of a region on one thread, as LLVM IR.

    A region is fn, data, chunks, the next one, and the row of the first.
    """
    return f"""
define internal void @{name}(ptr %region, i64 %ignored) nounwind {{
entry:
  %fn = load ptr, ptr %region
  %data.at = getelementptr i64, ptr %region, i64 1
  %data = load ptr, ptr %data.at
  %chunks.at = getelementptr i64, ptr %region, i64 2
  %chunks = load i64, ptr %chunks.at
  %next.at = getelementptr i64, ptr %region, i64 3
  %first.at = getelementptr i64, ptr %region, i64 4
  %first = load i64, ptr %first.at
  {_RING}
  %self = call i64 @pthread_self()
  %start = {how.ticks}
  br label %claim
claim:
  %before = phi i64 [ %start, %entry ], [ %end, %run ], [ %end, %note ]
  {claim}
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %run, label %done
run:  ; the row's line is fetched meanwhile, which another thread may have had last
  %slot = add i64 %first, %chunk
  {_ROW}
  call void @llvm.prefetch.p0(ptr %row, i32 1, i32 3, i32 1)
  call void %fn(ptr %data, i64 %chunk)
  %end = {how.ticks}
  %count = load atomic i64, ptr %count.at monotonic, align 8
  %since = sub i64 %count, %slot
  %late = icmp ugt i64 %since, {CAPACITY}  ; its row belongs to another one by now
  br i1 %late, label %claim, label %note
note:
  {_noted("%fn", "%chunk", "%before", "%end", "%self")}
  br label %claim
done:
  ret void
}}
"""


def _text() -> str:
    how = reading()
    return f"""
{how.declared}
@ring = dso_local global ptr null, align 8
@threads = dso_local global i64 1, align 8
declare void @parallel(ptr, ptr, i64, ptr)
declare i64 @pthread_self()
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

{_member("member", "%chunk = atomicrmw add ptr %next.at, i64 1 monotonic", how)}
{_member("only", _ALONE, how)}
define void @traced(ptr %fn, ptr %data, i64 %chunks, ptr %context) nounwind {{
entry:
  {_RING}
  %region = alloca [5 x i64], align 64
  store ptr %fn, ptr %region
  %data.at = getelementptr i64, ptr %region, i64 1
  store ptr %data, ptr %data.at
  %chunks.at = getelementptr i64, ptr %region, i64 2
  store i64 %chunks, ptr %chunks.at
  %next.at = getelementptr i64, ptr %region, i64 3
  store i64 0, ptr %next.at
  %some = icmp sgt i64 %chunks, 0
  br i1 %some, label %begin, label %done
begin:
  %first = atomicrmw add ptr %count.at, i64 %chunks monotonic
  %first.at = getelementptr i64, ptr %region, i64 4
  store i64 %first, ptr %first.at
  %threads = load i64, ptr @threads
  %few = icmp slt i64 %chunks, %threads
  %members = select i1 %few, i64 %chunks, i64 %threads
  %alone = icmp eq i64 %threads, 1
  %member = select i1 %alone, ptr @only, ptr @member
  call void @parallel(ptr %member, ptr %region, i64 %members, ptr %context)
  br label %done
done:
  ret void
}}

define void @entered(ptr %launch, ptr %context, ptr %program) nounwind {{
entry:
  %begin = {how.ticks}
  call void %program(ptr %launch, ptr %context)
  {how.settled}
  %end = {how.ticks}
  {_RING}
  %slot = atomicrmw add ptr %count.at, i64 1 monotonic
  %self = call i64 @pthread_self()
  {_ROW}
  {_noted("%program", str(CALL), "%begin", "%end", "%self")}
  ret void
}}

define i64 @ready() nounwind {{
entry:
  {_RING}
  %count = load i64, ptr %count.at
  %taken.at = getelementptr i64, ptr %ring, i64 {_Head.TAKEN}
  %taken = load i64, ptr %taken.at
  %looked.at = getelementptr i64, ptr %ring, i64 {_Head.LOOKED}
  %looked = load i64, ptr %looked.at
  %patience.at = getelementptr i64, ptr %ring, i64 {_Head.PATIENCE}
  %patience = load i64, ptr %patience.at
  %now = {how.ticks}
  %since = sub i64 %now, %looked
  %soon = icmp ult i64 %since, %patience
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
        self._head: Any = (ctypes.c_int64 * len(_Head))(self._rows.ctypes.data, *[0] * (len(_Head) - 1))
        self._late: Any = np.empty(0, np.int64)
        """The rows, by number, that were begun and not whole when they would have been read."""
        self.address = ctypes.addressof(self._head)
        self._counter = counter()

    def taken(self) -> tuple[Any, int]:
        """Return what was left since the last time, for `told` to read, and how many rows are lost.

        What is being written at this moment is left for the next time.
        """
        count: int = self._head[_Head.COUNT]
        taken: int = self._head[_Head.TAKEN]
        oldest = count - CAPACITY
        first = max(taken, oldest)
        late = self._late[self._late >= oldest]
        lost = first - taken + len(self._late) - len(late)
        rows, numbers = self._between(first, count), np.arange(first, count)
        if len(late):
            joined: Any = np.concatenate
            rows, numbers = joined([self._rows[late % CAPACITY], rows]), joined([late, numbers])
        whole = rows.view(np.uint32)[:, 0] == (numbers + 1).astype(np.uint32)
        is_whole = bool(whole.all())
        self._late, self._head[_Head.TAKEN] = late[:0] if is_whole else numbers[~whole], count
        self._look()
        return rows if is_whole else rows[whole], lost

    def _between(self, first: int, count: int) -> Any:
        """Return a copy of the rows of so many numbers, the newest that there are."""
        begin, end = first % CAPACITY, count % CAPACITY
        if first == count or begin < end:
            return self._rows[begin:end].copy()
        return np.concatenate([self._rows[begin:], self._rows[:end]])

    def _look(self) -> None:
        """Have calls go on without Python for a while."""
        self._head[_Head.LOOKED] = self._counter.compare()
        self._head[_Head.PATIENCE] = self._counter.ticks_in(PAUSE)


def told(rows: Any) -> Any:
    """Return what was taken from a ring as columns: code, chunk, begin, end and thread.

    Times are nanoseconds of the monotonic clock.
    """
    code, begin, end, thread = rows[:, 1:].T
    nanoseconds = counter().nanoseconds
    return code, rows.view(np.int32)[:, 1], nanoseconds(begin), nanoseconds(end), thread


class Recorder:
    """Code that runs chunks on as many threads as some other does, and entries, and leaves in a ring when each ran."""

    def __init__(self, ring: Ring, parallel: int, threads: int) -> None:
        self.loaded: Loaded = load(_object(), {"parallel": parallel}).pin()
        for word, value in {"ring": ring.address, "threads": threads}.items():
            ctypes.c_int64.from_address(self.loaded.address(word)).value = value
        self.address, self.entered, self.ready = map(self.loaded.address, ("traced", "entered", "ready"))
        """Where a program finds it, what calls an entry, and what tells whether that may go on without Python."""
        self.enter = self.loaded.function("entered", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._ring = ring


@cache
def _object() -> bytes:
    """Return its object code, made to be fast: it is a part of every chunk."""
    return assemble(_text(), host()).object
