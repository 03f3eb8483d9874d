"""Watching: which elements of its arguments each turn of a call reads and writes, as the interpreter runs it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from tilewright.arrays import np
from tilewright.core.access import Access as Kind
from tilewright.core.grid import CURRENT
from tilewright.core.program import Function, Program
from tilewright.core.region import Array, whole
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TensorType
from tilewright.errors import ExecutionError, RaceError
from tilewright.explore.findings import found_in
from tilewright.explore.page import Access, Argument, Finding, Touch, Turn
from tilewright.interpret.checked import CheckedMachine
from tilewright.interpret.races import Races
from tilewright.source import UNKNOWN, Span

Noted: TypeAlias = "tuple[int, Kind, Array, Span]"
"""Which argument was touched, how, its elements by their numbers, and where that was written."""

LARGEST = 1 << 16
"""How many elements an argument may have: a picture has no room for more."""

MOST_TURNS = 2000
TOO_LARGE = f"a picture shows arguments of {LARGEST} elements and {MOST_TURNS} turns at most"


class TooLarge(ValueError):
    """A call whose arguments, or turns, are more than a picture shows."""


class Watcher(Races):
    """Takes note of every access to the arguments of a call, and of turns that race, which go on."""

    def __init__(self, arguments: Sequence[Array | None]) -> None:
        super().__init__()
        self.memory = [(number, each) for number, each in enumerate(arguments) if each is not None]
        self.loops: list[str] = []
        """The turns around what runs, those in order too."""
        self.turns_seen: dict[tuple[str, ...], list[Noted]] = {}
        self.raced: list[RaceError] = []

    @property
    def listens(self) -> bool:
        """Whether accesses matter here: all of them do."""
        return True

    def touched(self, access: Kind, elements: Array) -> None:
        """Take note of an access, and of a race."""
        for number, argument in self.memory:
            if elements.size and 0 <= elements.ctypes.data - argument.ctypes.data < argument.nbytes:
                flat = _flat(elements, argument)
                span = self.call.span if self.call is not None else UNKNOWN
                self.turns_seen.setdefault(tuple(self.loops), []).append((number, access, flat, span))
                if len(self.turns_seen) > MOST_TURNS:
                    raise TooLarge(TOO_LARGE)
        try:
            super().touched(access, elements)
        except RaceError as race:
            self.raced.append(race)


class WatchedMachine(CheckedMachine):
    """Runs one function of a program once, its turns noted."""

    def __init__(self, program: Program, watcher: Watcher) -> None:
        super().__init__(program, watcher)
        self.watcher = watcher

    def turns(self, stmt: ForStmt, indices: range) -> Iterator[int]:
        """Yield the indices of a loop."""
        for index in super().turns(stmt, indices):
            with self._around(f"{stmt.loop_var.name_hint} = {index}"):
                yield index

    def blocks(self, count: int) -> Generator[None]:
        """Let each block of a grid be the current one, one after the other."""
        for _ in super().blocks(count):
            with self._around(f"block {CURRENT.get().index}"):
                yield

    @contextmanager
    def _around(self, name: str) -> Generator[None]:
        """Let what runs be inside a turn, which a `break` may leave early."""
        self.watcher.loops.append(name)
        try:
            yield
        finally:
            self.watcher.loops.pop()


def watched(program: Program, name: str, values: Sequence[Any], place: Callable[[Span], int]) -> Access:
    """Return what a call of an entry touches; its arguments stay as they are. TooLarge where there is no room for it.

    `place` turns a span into the number of a place on the page.
    """
    function = program[name]
    arrays = [np.array(value.array) if hasattr(value, "array") else None for value in values]
    if any(array is not None and array.size > LARGEST for array in arrays):
        raise TooLarge(TOO_LARGE)
    watcher = Watcher(arrays)
    given = [value if array is None else whole(array) for value, array in zip(values, arrays, strict=True)]
    failed: list[Finding] = []
    try:
        WatchedMachine(program, watcher).run(name, given)
    except ExecutionError as error:
        kind = "undefined" if "nobody wrote" in error.message else "failed"
        failed.append(Finding(kind, "", str(error), place(error.place)))
    tensors = {position: array for position, array in enumerate(arrays) if array is not None}
    described = [_argument(function, position, array) for position, array in tensors.items()]
    turns = [
        Turn(", ".join(loops), [_touch(noted, list(tensors), place) for noted in touches])
        for loops, touches in watcher.turns_seen.items()
    ]
    races = [Finding("race", "", str(race), place(race.place)) for race in _distinct(watcher.raced)]
    return Access(described, turns, [*failed, *races, *found_in(described, turns)])


def _argument(function: Function, position: int, array: Array) -> Argument:
    param, direction = function.params[position], function.param_directions[position]
    assert isinstance(param.type, TensorType)
    return Argument(param.name_hint, list(array.shape), str(param.type.dtype), direction.name)


def _touch(noted: Noted, tensors: Sequence[int], place: Callable[[Span], int]) -> Touch:
    number, access, flat, span = noted
    return Touch(tensors.index(number), access.value, _runs(flat), place(span))


def _distinct(races: Sequence[RaceError]) -> list[RaceError]:
    """Return one race for each pair of lines."""
    return list({(race.place.line, race.notes[0].partition(": ")[2]): race for race in reversed(races)}.values())[::-1]


def _flat(elements: Array, argument: Array) -> Array:
    """Return the numbers of a view's elements among those of an argument, which lie one after the other, in order."""
    width = argument.itemsize
    numbers: Array = np.array([(elements.ctypes.data - argument.ctypes.data) // width])
    for extent, stride in zip(elements.shape, elements.strides, strict=True):
        numbers = numbers[..., None] + np.array([index * (stride // width) for index in range(extent)])
    return np.unique(numbers)


def _runs(flat: Array) -> list[tuple[int, int]]:
    """Return sorted numbers as runs, from and to."""
    breaks: list[int] = np.flatnonzero(np.diff(flat) != 1).tolist()
    starts, ends = [0, *(at + 1 for at in breaks)], [*breaks, len(flat) - 1]
    return [(int(flat[start]), int(flat[end]) + 1) for start, end in zip(starts, ends, strict=True)]
