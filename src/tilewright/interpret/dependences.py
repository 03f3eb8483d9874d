"""Dependences: which turns of ranks have to be over before another, for what they do to the caller's memory.

What was written comes before what reads it, and what was read before what writes it. Two that write the same come in
the order of their statements; turns of one statement that write parts of one output go on side by side. Ranks that
share windows tell each other by signals who comes first, and may wait for one that is planned later: only what such a
rank reads comes after those that write it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.records import record

Stretch: TypeAlias = tuple[int, int]
"""Where some memory begins and ends."""


@record
class By:
    """Who touches memory: a rank in one of its turns, as a statement says."""

    rank: int
    number: int
    statement: Hashable
    has_windows: bool = False


class Dependences:
    """What turns have touched so far."""

    def __init__(self) -> None:
        self._reads, self._writes = _Touches(), _Touches()
        self._statements: dict[Hashable, int] = {}

    def needs(self, by: By, read: Sequence[Stretch], written: Sequence[Stretch]) -> tuple[tuple[int, int], ...]:
        """Return the last turn of each other rank that has to be over before one that reads and writes memory."""
        statement = self._statements.setdefault(by.statement, len(self._statements))
        found = dict[int, int]()
        for stretch in read:
            self._writes.last(found, stretch, by.rank)
        for stretch in written:
            self._reads.last(found, stretch, by.rank, signals=by.has_windows)
            self._writes.last(found, stretch, by.rank, signals=by.has_windows, but=statement)
        own = by.rank, by.number, statement, int(by.has_windows)
        self._reads.note((*stretch, *own) for stretch in read)
        self._writes.note((*stretch, *own) for stretch in written)
        return tuple(found.items())


class _Touches:
    """Stretches of memory, each with the rank that touched it, its turn and statement, and whether it has windows."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []
        self._known: Array = np.zeros((0, 6), np.int64)

    def note(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Take note of what a turn touches."""
        self._rows += rows

    def last(self, found: dict[int, int], stretch: Stretch, rank: int, *, signals: bool = False, but: int = -1) -> None:
        """Find the last turn of each other rank that touched a stretch.

        Turns of a statement do not count, nor, for who is told by `signals`, those that have windows, too.
        """
        if len(self._known) + 64 < len(self._rows):  # those that came since are few enough to look at one by one
            self._known = np.array(self._rows, np.int64)
        low, high = stretch
        known = self._known
        meets = (known[:, 0] < high) & (known[:, 1] > low) & (known[:, 2] != rank) & (known[:, 4] != but)
        late = self._rows[len(known) :]
        hits = known[meets].tolist() + [
            row for row in late if row[0] < high and row[1] > low and row[2] != rank and row[4] != but
        ]
        for _, _, other, number, _, has_windows in hits:
            if not (signals and has_windows):
                found[other] = max(number, found.get(other, 0))
