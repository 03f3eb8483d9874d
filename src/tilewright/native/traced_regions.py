"""Traced regions: chunks that run as always, and leave behind when each ran on which thread.

`@traced` has the signature of `@parallel`, which it calls: a program that is to be traced gets it in that one's place,
and pays two looks at the clock and five words a chunk. No other program knows of it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.native.loader import Loaded, load
from tilewright.native.threads import Emit, emitted

CAPACITY = 1 << 16
"""How many chunks one call may leave behind; later ones are only counted."""

TEXT = """
@events = dso_local global ptr null, align 8
@capacity = dso_local global i64 0, align 8
@count = dso_local global i64 0, align 64
declare void @parallel(ptr, ptr, i64, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()

define internal i64 @now() nounwind {
entry:
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}

define internal void @chunk(ptr %region, i64 %chunk) nounwind {
entry:
  %fn = load ptr, ptr %region
  %data.at = getelementptr i64, ptr %region, i64 1
  %data = load ptr, ptr %data.at
  %begin = call i64 @now()
  call void %fn(ptr %data, i64 %chunk)
  %end = call i64 @now()
  %slot = atomicrmw add ptr @count, i64 1 monotonic
  %capacity = load i64, ptr @capacity
  %fits = icmp slt i64 %slot, %capacity
  br i1 %fits, label %keep, label %done
keep:
  %events = load ptr, ptr @events
  %self = call i64 @pthread_self()
  %word = mul i64 %slot, 5
  %at = getelementptr i64, ptr %events, i64 %word
  store ptr %fn, ptr %at
  %at.1 = getelementptr i64, ptr %at, i64 1
  store i64 %chunk, ptr %at.1
  %at.2 = getelementptr i64, ptr %at, i64 2
  store i64 %begin, ptr %at.2
  %at.3 = getelementptr i64, ptr %at, i64 3
  store i64 %end, ptr %at.3
  %at.4 = getelementptr i64, ptr %at, i64 4
  store i64 %self, ptr %at.4
  br label %done
done:
  ret void
}

define void @traced(ptr %fn, ptr %data, i64 %chunks, ptr %context) nounwind {
entry:
  %region = alloca [2 x i64]
  store ptr %fn, ptr %region
  %data.at = getelementptr i64, ptr %region, i64 1
  store ptr %data, ptr %data.at
  call void @parallel(ptr @chunk, ptr %region, i64 %chunks, ptr %context)
  ret void
}
"""


class Recorder:
    """Code that runs chunks as `parallel` does, and what it has seen of them."""

    def __init__(self, parallel: int, emit: Emit = emitted) -> None:
        self.loaded: Loaded = load(emit(TEXT), {"parallel": parallel}).pin()
        self.words: Any = np.zeros((CAPACITY, 5), np.int64)
        self._word("events").value = self.words.ctypes.data
        self._word("capacity").value = CAPACITY
        self._count = self._word("count")
        self.address = self.loaded.address("traced")
        """Where a program finds it."""

    def taken(self) -> tuple[Any, int]:
        """Return the chunks that have run since the last time, as (code, chunk, begin, end, thread), and all of them.

        Times are nanoseconds of the monotonic clock.
        """
        count = self._count.value
        found = self.words[: min(count, CAPACITY)].copy()
        self._count.value = 0
        return found, count

    def _word(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.loaded.address(name))


@cache
def recorder(parallel: int) -> Recorder:
    """Return what records the chunks that some code runs."""
    return Recorder(parallel)
