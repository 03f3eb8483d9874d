"""Counters: what native code tells the time by where a look at the clock would be too dear.

That is the processor's own counter where it runs at one rate on all cores, asleep or not, and the monotonic clock
elsewhere. A look is one instruction, 8 ns where the clock takes 20. What ticks are on the monotonic clock is told by
the moments at which Python looked at both: between two of them time is a straight line, so what is in order by the
counter is in order by the clock.
"""

from __future__ import annotations

import ctypes
from functools import cache
from time import monotonic_ns
from typing import Any

from tilewright.arrays import np
from tilewright.forks import Lock
from tilewright.native.loader import load
from tilewright.native.machines import Machine, Processor, System, here
from tilewright.native.target import cpu_flags
from tilewright.native.threads import emitted
from tilewright.records import record

CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
"""The clocks that Linux trusts; it leaves out a counter of which its cores have different ideas."""
LOOKS = 5
"""How often both are looked at for one moment; the closest look counts."""
KEPT = 1024
"""How many moments are remembered; of more, every other one of the older half goes."""


@record
class Reading:
    """How code reads a counter, as LLVM IR."""

    declared: str
    """What a module says before."""
    ticks: str
    """The call that yields them."""
    settled: str
    """What comes before that call where all that was begun earlier has to be over."""


_OWN = {
    Processor.X86_64: Reading(
        "declare i64 @llvm.readcyclecounter()\ndeclare void @llvm.x86.sse2.lfence()",
        "call i64 @llvm.readcyclecounter()",
        "call void @llvm.x86.sse2.lfence()",
    ),
    Processor.AARCH64: Reading(
        "declare i64 @llvm.read_volatile_register.i64(metadata)\n"
        'declare void @llvm.aarch64.isb(i32)\n!0 = !{!"cntvct_el0"}',
        "call i64 @llvm.read_volatile_register.i64(metadata !0)",
        "call void @llvm.aarch64.isb(i32 15)",
    ),
}
_MONOTONIC = {System.LINUX: 1, System.MACOS: 6}
"""What the monotonic clock goes by."""
_CLOCK = """
declare i32 @clock_gettime(i32, ptr)
define internal i64 @clock() nounwind {{
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 {}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}
"""


@cache
def reading() -> Reading:
    """Return how code tells the time on this machine."""
    machine = here()
    assert machine is not None, "whoever makes native code has asked whether there is any"
    if machine.system not in _MONOTONIC or is_steady(machine):
        return _OWN[machine.processor]
    return Reading(_CLOCK.format(_MONOTONIC[machine.system]), "call i64 @clock()", "")


def is_steady(machine: Machine) -> bool:
    """Tell whether all cores count alike: aarch64's do by definition, others say so to Linux, which checks."""
    if machine.processor is Processor.AARCH64:
        return True
    return {"constanttsc", "nonstoptsc"} <= cpu_flags() and "tsc" in _trusted_clocks()


def _trusted_clocks() -> list[str]:
    try:
        with open(CLOCKS, encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


class Counter:
    """A counter, and the moments at which it was compared with the monotonic clock."""

    def __init__(self, how: Reading) -> None:
        text = f"{how.declared}\ndefine i64 @now() nounwind {{\n  %now = {how.ticks}\n  ret i64 %now\n}}\n"
        self.now = load(emitted(text)).pin().function("now", ctypes.c_int64)
        """Returns its ticks."""
        self.moments: list[tuple[int, int]] = []
        """Ticks and nanoseconds of some moments, the first and the last among them."""
        self._lock = Lock()
        self.compare()

    def compare(self) -> int:
        """Look at counter and clock at one moment; return its ticks."""
        with self._lock:
            ticks, time = min(map(self._look, range(LOOKS)))[1:]
            if self.moments and ticks < self.moments[-1][0]:
                self.moments = []  # it began anew, as some do while the whole machine sleeps
            if not self.moments or ticks > self.moments[-1][0]:
                self.moments.append((ticks, time))
            if len(self.moments) > KEPT:
                del self.moments[1 : KEPT // 2 : 2]
            return ticks

    def _look(self, _: int) -> tuple[int, int, int]:
        """Return how long looks at the clock before and after one at the counter are apart, ticks, and the middle."""
        before = monotonic_ns()
        ticks = self.now()
        after = monotonic_ns()
        return after - before, ticks, (before + after) // 2

    def nanoseconds(self, ticks: Any) -> Any:
        """Return when ticks between the first and the last comparison were, in nanoseconds of the monotonic clock."""
        base, start = self.moments[0]
        known = np.array(self.moments, np.int64) - (base, start)  # small enough to be exact as floats
        between: Any = np.interp
        return between(ticks - base, known[:, 0], known[:, 1]).round().astype(np.int64) + start

    def ticks_in(self, nanoseconds: int) -> int:
        """Return how many ticks so much time is, by the last two comparisons; none before there are two."""
        (first, start), (last, end) = (self.moments[-2:] * 2)[:2]
        return (last - first) * nanoseconds // (end - start) if end > start else 0


@cache
def counter() -> Counter:
    """Return the counter that native code of this process reads."""
    return Counter(reading())
