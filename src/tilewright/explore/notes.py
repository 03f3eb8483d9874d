"""Notes: which elements of some memory were touched, by the turns around what did it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tilewright.arrays import np
from tilewright.core.access import Access as Kind
from tilewright.core.region import Array
from tilewright.errors import RaceError
from tilewright.explore.findings import GAP, found_in
from tilewright.explore.page import Access, Argument, Finding, Touch, Turn
from tilewright.source import Span

Noted: TypeAlias = "tuple[int, Kind, Array, Span]"
"""Which argument was touched, how, its elements by their numbers, and where that was written."""

LARGEST = 1 << 16
"""How many elements an argument may have: a picture has no room for more."""

MOST_TURNS = 2000
TOO_LARGE = f"a picture shows arguments of {LARGEST} elements and {MOST_TURNS} turns at most"


class TooLarge(ValueError):
    """A call whose arguments, or turns, are more than a picture shows."""


class Notes:
    """What was touched of some memory, by the turns around what did it."""

    def __init__(self) -> None:
        self.memory: list[Array] = []
        self.arguments: list[Argument] = []
        self.seen: dict[tuple[str, ...], list[Noted]] = {}
        self.raced: list[RaceError] = []
        self.racing: dict[int, list[Array]] = {}
        """The elements of each argument that turns race for."""

    def watch(self, argument: Argument, array: Array) -> None:
        """Take note of accesses to an array from here on; TooLarge where a picture has no room for it."""
        if array.size > LARGEST:
            raise TooLarge(TOO_LARGE)
        self.arguments.append(argument)
        self.memory.append(array)

    def take(self, turn: Sequence[str], access: Kind, elements: Array, span: Span) -> None:
        """Take note of an access."""
        for number, flat in self._within(elements):
            self.seen.setdefault(tuple(turn), []).append((number, access, np.unique(flat), span))
            if len(self.seen) > MOST_TURNS:
                raise TooLarge(TOO_LARGE)

    def race(self, race: RaceError, elements: Array, racing: Array) -> None:
        """Take note of a race, for those elements of the ones that an access touched."""
        self.raced.append(race)
        for number, flat in self._within(elements):
            self.racing.setdefault(number, []).append(flat[racing])

    def _within(self, elements: Array) -> Iterator[tuple[int, Array]]:
        """Yield which arguments a view is of, and the numbers that its elements have there."""
        for number, argument in enumerate(self.memory):
            if elements.size and 0 <= elements.ctypes.data - argument.ctypes.data < argument.nbytes:
                yield number, _flat(elements, argument)

    def shown(self, failed: Sequence[Finding], place: Callable[[Span], int]) -> Access:
        """Return all of it, and what there is to know about it; a call that failed has gaps that mean nothing."""
        turns = [
            Turn(
                ", ".join(loops),
                [Touch(number, kind.value, _runs(flat), place(at)) for number, kind, flat, at in noted],
            )
            for loops, noted in self.seen.items()
        ]
        races = [Finding("race", "", str(race), place(race.place)) for race in _distinct(self.raced)]
        racing = [
            _runs(np.unique(np.concatenate(self.racing[number]))) if number in self.racing else []
            for number in range(len(self.arguments))
        ]
        found = [each for each in found_in(self.arguments, turns) if each.kind != GAP or not failed]
        return Access(self.arguments, turns, [*failed, *races, *found], racing)


def _distinct(races: Sequence[RaceError]) -> list[RaceError]:
    """Return one race for each pair of lines."""
    return list({(race.place.line, race.notes[0].partition(": ")[2]): race for race in reversed(races)}.values())[::-1]


def _flat(elements: Array, argument: Array) -> Array:
    """Return the number of each of a view's elements among those of an argument, which lie one after the other."""
    width = argument.itemsize
    numbers: Array = np.array((elements.ctypes.data - argument.ctypes.data) // width)
    for extent, stride in zip(elements.shape, elements.strides, strict=True):
        numbers = numbers[..., None] + np.array([index * (stride // width) for index in range(extent)])
    return numbers


def _runs(flat: Array) -> list[tuple[int, int]]:
    """Return sorted numbers as runs, from and to."""
    breaks: list[int] = np.flatnonzero(np.diff(flat) != 1).tolist()
    starts, ends = [0, *(at + 1 for at in breaks)], [*breaks, len(flat) - 1]
    return [(int(flat[start]), int(flat[end]) + 1) for start, end in zip(starts, ends, strict=True)]
