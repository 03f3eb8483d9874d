"""Window races: elements of windows that two ranks touch with no signal between them, one of them writing.

Ranks have vector clocks. A notify leaves the clock of its rank at the cell, a wait takes over those that it had to wait
for (`signals.py`), a turn that comes after another one takes over its, and a collective makes all of them equal. Each
byte of a window knows who wrote it last and when each rank last read it; an access that one of those may happen at the
same time as is an error. So it is with what several ranks touch of the caller's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access
from tilewright.core.region import Array
from tilewright.errors import RaceError
from tilewright.interpret.dependences import Stretch
from tilewright.interpret.shadow import reach
from tilewright.interpret.signals import Cell, Told
from tilewright.source import UNKNOWN, Span

HELP = "let the one notify the other when it is done, and that one wait before it goes on"
APART = "turns of one statement go on side by side: give each rank a part of its own, or let signals order them"


class _Shadow:
    """What was done to some bytes: when each rank last read, wrote and added to each of them."""

    def __init__(self, stretch: Stretch, ranks: int, help: str) -> None:
        self.low, self.high = stretch
        self.help = help
        self.when: Array = np.zeros((len(Access), ranks, self.high - self.low), np.int32)

    def beside(self, elements: Array) -> Any:
        """Return the times beside elements: by access, rank, and then as the elements are, with their bytes."""
        offset, item = elements.ctypes.data - self.low, self.when.itemsize
        strides = (*self.when.strides[:2], *(stride * item for stride in elements.strides), item)
        shape = (*self.when.shape[:2], *elements.shape, elements.itemsize)
        return np.lib.stride_tricks.as_strided(self.when[:, :, offset:], shape, strides)


_KINDS = list(Access)
_CONFLICTS = {
    Access.READ: (Access.WRITE, Access.ADD),
    Access.WRITE: (Access.WRITE, Access.READ, Access.ADD),
    Access.ADD: (Access.WRITE, Access.READ),
}


class WindowRaces:
    """Holds every access to a window against those of other ranks; RaceError for two that nothing orders."""

    def __init__(self, ranks: int, parts: Iterable[Array], caller: Iterable[Stretch] = ()) -> None:
        self.rank = 0
        """The one that is running."""
        self.at: Span = UNKNOWN
        """Where it is."""
        self.clocks: Array = np.zeros((ranks, ranks), np.int32)
        np.fill_diagonal(self.clocks, 1)
        self.cells: dict[int, Cell] = {}
        self.shadows = [_Shadow(reach(part), ranks, HELP) for part in parts]
        self.shadows += [_Shadow(stretch, ranks, APART) for stretch in caller]
        self.spans: dict[tuple[int, int, int], list[Span]] = {}
        """Where a rank touched anything in some way at some time."""
        self.racing: Any = np.zeros((), bool)
        """Which of the elements that an access touched it raced for, the last one that did."""

    def released(self, rank: int, cell: Array, value: int, is_set: bool) -> None:
        """Leave at a cell, which a rank is about to set or to add to, what it has done so far."""
        held, clock = int(cell[0]), self.clocks[rank]
        known = self.cells.setdefault(cell.ctypes.data, Cell(held, held))
        known.tell(held, Told(rank, clock.copy(), value, is_set))
        clock[rank] += 1

    def acquired(self, rank: int, cell: Array, expected: range) -> None:
        """Let a rank come after what its cell had to be told before it held something expected."""
        known = self.cells.get(cell.ctypes.data)
        if known is not None:
            self.clocks[rank] = known.awaited(int(cell[0]), expected, self.clocks[rank])

    def over(self, rank: int) -> Array:
        """Return the clock of a rank whose turn is over."""
        found = self.clocks[rank].copy()
        self.clocks[rank][rank] += 1
        return found

    def followed(self, rank: int, clock: Array) -> None:
        """Let a rank come after a turn that was over at a clock."""
        self.clocks[rank] = np.maximum(self.clocks[rank], clock)

    def met(self, ranks: Sequence[int]) -> None:
        """Let ranks come after all that any of them did."""
        everyone = self.clocks[list(ranks)].max(axis=0)
        for rank in ranks:
            self.clocks[rank] = everyone
            self.clocks[rank][rank] += 1

    def touched(self, access: Access, elements: Array) -> None:
        """Hold an access of the running rank against what others did to the same elements, and remember it."""
        at = elements.ctypes.data
        shadow = next((s for s in self.shadows if s.low <= at < s.high), None)
        if shadow is None or not elements.size:
            return
        when, clock = shadow.beside(elements), self.clocks[self.rank]
        for other in _CONFLICTS[access]:
            times = when[_KINDS.index(other)]
            for rank in range(len(clock)):
                if rank != self.rank and (times[rank] > clock[rank]).any():
                    raise self._race(access, other, rank, times[rank], shadow.help)
        now = int(clock[self.rank])
        when[_KINDS.index(access), self.rank] = now
        places = self.spans.setdefault((self.rank, _KINDS.index(access), now), [])
        if self.at not in places:
            places.append(self.at)

    def _race(self, access: Access, other: Access, rank: int, times: Array, help: str) -> RaceError:
        self.racing = (times > int(self.clocks[self.rank][rank])).any(axis=-1)
        place = [int(i) for i in np.argwhere(self.racing)[0]]
        spans = self.spans.get((rank, _KINDS.index(other), int(times[(*place, 0)])), [UNKNOWN])
        where = f"element {place} of what this touches"
        message = f"rank {self.rank} {access.value} {where}, which rank {rank} {other.value}: no signal orders them"
        return RaceError(message, notes=[f"rank {rank} {other.value} it at {spans[-1]}"], help=help)
