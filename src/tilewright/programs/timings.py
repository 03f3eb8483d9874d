"""Timings: wall times of the same thing done again and again, in microseconds."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any


@dataclass(frozen=True)
class Timings:
    """How long each of several runs took, in microseconds."""

    times: Sequence[float]

    @property
    def samples(self) -> int:
        """How many runs were timed."""
        return len(self.times)

    @property
    def min(self) -> float:
        """The shortest run."""
        return min(self.times)

    @property
    def max(self) -> float:
        """The longest run."""
        return max(self.times)

    @property
    def mean(self) -> float:
        """The average run."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.times)

    @property
    def stdev(self) -> float:
        """How far runs are from the average, by their standard deviation; 0 for a single one."""
        return statistics.stdev(self.times) if self.samples > 1 else 0.0

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between which times the middle half of the runs lies."""
        if self.samples < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def spread(self) -> float:
        """How wide the middle half of the runs is, as a part of the median: below 0.05 is a quiet machine."""
        low, high = self.quartiles
        return (high - low) / self.median if self.median else 0.0


def timed(
    run: Callable[[], Any],
    rounds: int,
    elapsed: Callable[[Callable[[], Any]], float],
    *,
    warmup: int = 3,
    longest: float = float("inf"),
) -> tuple[float, ...]:
    """Return how long each of `rounds` runs took by some clock, in seconds; fewer where that would take too long."""
    for _ in range(warmup):
        run()
    found: list[float] = []
    with _without_collection():
        while len(found) < rounds and sum(found) < longest:
            found.append(elapsed(run))
    return tuple(found)


def within(alone: Sequence[float], called: Sequence[float]) -> tuple[float, ...]:
    """Return how long a program took by itself, at most as long as the calls that contain it.

    Python starts it, which may take longer than the machine code that takes warm calls.
    """
    most = statistics.median(called)
    return tuple([min(each, most) for each in alone])


def wall(run: Callable[[], Any]) -> float:
    """Return the seconds until a run returns."""
    start = perf_counter_ns()
    run()
    return (perf_counter_ns() - start) / 1e9


@contextmanager
def _without_collection() -> Generator[None]:
    """Keep the garbage collector out of the measurement, as `timeit` does."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
