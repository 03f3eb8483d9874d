"""Timelines of GPUs: when each kernel ran, and on which stream.

`@traced_launch` has the signature of the driver's own function, which it calls between two events: a program that is to
be traced is loaded once more with it in that one's place, and pays those. No other program knows of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from time import monotonic_ns
from typing import Any

from tilewright.arrays import np
from tilewright.backends.cuda.driver import Driver, DriverError, driver
from tilewright.backends.interface import Launched
from tilewright.native.loader import Loaded, load
from tilewright.native.threads import Emit, emitted

LAUNCH = "cuLaunchKernelEx"
_STREAM = 32
"""Where in what a launch is told its stream lies."""
CAPACITY = 1 << 12
"""How many launches are remembered; of more only the last ones."""
STALE = 10**9
"""Nanoseconds after which the GPU's clock is compared anew: its floats get coarser."""
_NON_BLOCKING = 1
_ROW = 5

_GIVEN = "ptr %config, ptr %kernel, ptr %params, ptr %extra"

TEXT = f"""
@rows = dso_local global ptr null, align 8
@count = dso_local global i64 0, align 64
declare i32 @cuEventRecord(ptr, ptr)
declare i32 @{LAUNCH}(ptr, ptr, ptr, ptr)

define i32 @traced_launch({_GIVEN}) nounwind {{
  %number = atomicrmw add ptr @count, i64 1 monotonic
  %slot = urem i64 %number, {CAPACITY}
  %word = mul i64 %slot, {_ROW}
  %rows = load ptr, ptr @rows, align 8
  %row = getelementptr i64, ptr %rows, i64 %word
  %row.1 = getelementptr i64, ptr %row, i64 1
  %row.2 = getelementptr i64, ptr %row, i64 2
  %row.3 = getelementptr i64, ptr %row, i64 3
  %row.4 = getelementptr i64, ptr %row, i64 4
  %before = load ptr, ptr %row, align 8
  %after = load ptr, ptr %row.1, align 8
  %place = getelementptr i8, ptr %config, i64 {_STREAM}
  %stream = load ptr, ptr %place, align 8
  %begun = call i32 @cuEventRecord(ptr %before, ptr %stream)
  %code = call i32 @{LAUNCH}({_GIVEN})
  %ended = call i32 @cuEventRecord(ptr %after, ptr %stream)
  store ptr %kernel, ptr %row.2, align 8
  store ptr %stream, ptr %row.3, align 8
  %written = add i64 %number, 1
  store atomic i64 %written, ptr %row.4 release, align 8
  ret i32 %code
}}
"""
"""A row is the events before and after a launch, its kernel and stream, and its number plus one once it is whole."""


class Timeline:
    """The launches on one GPU of all programs that are traced there."""

    def __init__(self, gpu: Driver, device: int, emit: Emit = emitted) -> None:
        self.gpu, self.device = gpu, device
        self.names: dict[int, str] = {}
        """What the kernels are called, by their handles."""
        self._seen, self._base, self._based = 0, self._event(), 0
        self._streams: dict[int, int] = {}
        self._own = ctypes.c_void_p()
        with gpu.using(device):
            gpu.call("cuStreamCreate", ctypes.byref(self._own), _NON_BLOCKING)
        events = [[self._event().value, self._event().value, 0, 0, 0] for _ in range(CAPACITY)]
        self._rows: Any = np.array(events, np.uint64)
        symbols = {name: gpu.address(name) for name in ("cuEventRecord", LAUNCH)}
        self.loaded: Loaded = load(emit(TEXT), symbols).pin()
        self._word("rows").value = self._rows.ctypes.data
        self._count = self._word("count")

    @property
    def symbols(self) -> dict[str, int]:
        """Where a program finds what launches its kernels."""
        return {LAUNCH: self.loaded.address("traced_launch")}

    def begin(self) -> None:
        """Compare the GPU's clock with the host's, where nothing waits that an older look is good for."""
        if self._seen == self._count.value and monotonic_ns() - self._based > STALE:
            with self.gpu.using(self.device):
                for _ in range(2):  # the second one finds everything ready
                    start = monotonic_ns()
                    self.gpu.call("cuEventRecord", self._base, self._own)
                    self.gpu.call("cuEventSynchronize", self._base)
                    self._based = (start + monotonic_ns()) // 2

    @property
    def is_filling(self) -> bool:
        """Whether what was launched should be taken soon."""
        return self._count.value - self._seen > CAPACITY // 2

    def taken(self) -> Iterator[Launched]:
        """Yield what was launched since the last time, once it has run; what somebody captured has no times."""
        count = self._count.value
        first, self._seen = max(self._seen, count - CAPACITY), count
        with self.gpu.using(self.device):
            for number in range(first, count):
                before, after, kernel, stream, written = map(int, self._rows[number % CAPACITY])
                try:
                    self.gpu.call("cuEventSynchronize", ctypes.c_void_p(after))
                    begin, end = self._at(before), self._at(after)
                except DriverError:
                    continue
                if written == number + 1:
                    yield Launched(self.names.get(kernel, "?"), begin, end, self._place(stream))

    def _at(self, event: int) -> int:
        """Return when an event was, in nanoseconds of the host's clock."""
        passed = ctypes.c_float()
        self.gpu.call("cuEventElapsedTime", ctypes.byref(passed), self._base, ctypes.c_void_p(event))
        return self._based + round(passed.value * 1e6)

    def _place(self, stream: int) -> str:
        number = self._streams.setdefault(stream, len(self._streams))
        return f"cuda:{self.device} stream {number}"

    def _event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        with self.gpu.using(self.device):
            self.gpu.call("cuEventCreate", ctypes.byref(made), 0)
        return made

    def _word(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.loaded.address(name))


@cache
def timeline(device: int) -> Timeline:
    """Return the timeline of a GPU."""
    return Timeline(driver(), device)
