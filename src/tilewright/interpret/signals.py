"""Signals as the interpreter remembers them: what ranks told a cell, and which of it a wait must have come after.

A cell may hold more than a wait asks for. The wait comes after those notifies alone without which it would still be
waiting: of two that add 1, one that waits for 1 comes after neither if they are of different ranks, and after the first
if they are of one. Only the rank that has a cell waits for it, and what it knows already it need not be told.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field
from itertools import accumulate

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.records import mutable, record


@record
class Told:
    """A notify, and what its rank knew of the times of all, its own among them."""

    rank: int
    clock: Array
    value: int
    is_set: bool

    def is_known(self, clock: Array) -> bool:
        """Return whether who has a clock comes after this notify."""
        return bool(clock[self.rank] >= self.clock[self.rank])

    def after(self, held: int) -> int:
        """Return what a cell holds that held something before."""
        return self.value if self.is_set else held + self.value


@mutable
class Cell:
    """A cell of signals: what its rank knows that it held, and what it was told since, in that order."""

    held: int
    value: int
    """What it holds by all that it was told."""
    told: list[Told] = field(default_factory=list[Told])

    def tell(self, value: int, told: Told) -> None:
        """Take note of a notify that finds a value in the cell."""
        self._find(value)
        self.told.append(told)
        self.value = told.after(value)

    def _find(self, value: int) -> None:
        """Forget what was told where something else than signals has written the cell."""
        if value != self.value:
            self.held, self.value, self.told = value, value, []

    def awaited(self, value: int, expected: range, clock: Array) -> Array:
        """Return what a rank knows that has seen a value which it expected in its cell."""
        self._find(value)
        self._know(clock)
        found = self._first(expected) if any(told.is_set for told in self.told) else [*self._needed(expected)]
        return np.max([clock, *found], axis=0)

    def _know(self, clock: Array) -> None:
        """Hold what the rank of the cell knows of: all up to the last that was set, and what was added since."""
        known = [told.is_known(clock) for told in self.told]
        start = max((at + 1 for at, told in enumerate(self.told) if told.is_set and known[at]), default=0)
        self._pass(start)
        if not any(told.is_set for told in self.told):
            self.held += sum(told.value for told in self.told if told.is_known(clock))
            self.told = [told for told in self.told if not told.is_known(clock)]

    def _pass(self, count: int) -> None:
        """Hold what was told up to some place."""
        for told in self.told[:count]:
            self.held = told.after(self.held)
        self.told = self.told[count:]

    def _first(self, expected: range) -> list[Array]:
        """Return what was known to those that made a cell what is expected, in the order in which it was told."""
        values = [*accumulate(self.told, lambda value, told: told.after(value), initial=self.held)]
        count = next(at for at, value in enumerate(values) if value in expected)
        start = max((at for at, told in enumerate(self.told[:count]) if told.is_set), default=0)
        found = [told.clock for told in self.told[start:count]]
        self._pass(count)
        return found

    def _needed(self, expected: range) -> Iterator[Array]:
        """Yield, of each rank that has added to a cell, what it knew at the last time that had to be."""
        for rank in dict.fromkeys(told.rank for told in self.told):
            own = [told for told in self.told if told.rank == rank]
            count = bisect_left(own, True, key=lambda told: self._can_do_without(told, expected))
            if count:
                yield own[count - 1].clock

    def _can_do_without(self, one: Told, expected: range) -> bool:
        """Return whether a cell may be what is expected before it is told something, and all that comes after that."""
        others = [told.value for told in self.told if not one.is_known(told.clock)]
        low = self.held + sum(value for value in others if value < 0)
        high = self.held + sum(value for value in others if value > 0)
        return low < expected.stop and expected.start <= high
