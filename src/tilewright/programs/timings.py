"""Timings: wall times of the same thing done again and again, in microseconds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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
