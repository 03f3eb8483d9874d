"""Watched turns: which elements of its arguments each turn of a call reads and writes, as the interpreter runs it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access as Kind
from tilewright.core.grid import CURRENT
from tilewright.core.program import Function, Program
from tilewright.core.region import Array, whole
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TensorType
from tilewright.errors import ExecutionError, RaceError
from tilewright.explore.notes import Notes
from tilewright.explore.page import Access, Argument, Finding
from tilewright.explore.watched_ranks import run_watched
from tilewright.interpret.checked import CheckedMachine
from tilewright.interpret.races import Races
from tilewright.source import UNKNOWN, Span


class Watcher(Races):
    """Takes note of every access to the arguments of a call, and of turns that race, which go on."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.notes = notes
        self.loops: list[str] = []
        """The turns around what runs, those in order too."""

    @property
    def listens(self) -> bool:
        """Whether accesses matter here: all of them do."""
        return True

    def touched(self, access: Kind, elements: Array) -> None:
        """Take note of an access, and of a race."""
        self.notes.take(self.loops, access, elements, self.call.span if self.call is not None else UNKNOWN)
        try:
            super().touched(access, elements)
        except RaceError as race:
            self.notes.race(race, elements, self.racing)


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


def watched(
    program: Program, name: str, values: Sequence[Any], place: Callable[[Span], int], ranks: int = 1
) -> Access:  # fmt: skip
    """Return what a call of an entry touches; its arguments stay as they are. TooLarge where there is no room for it.

    `place` turns a span into the number of a place on the page; host functions run on so many `ranks`.
    """
    arrays = [np.array(value.array) if hasattr(value, "array") else None for value in values]
    given = [value if array is None else whole(array) for value, array in zip(values, arrays, strict=True)]
    notes, failed = Notes(), list[Finding]()
    for position, array in enumerate(arrays):
        if array is not None:
            notes.watch(_argument(program[name], position, array), array)
    try:
        if program[name] in program.hosts:
            run_watched(program, name, given, ranks, notes)
        else:
            WatchedMachine(program, Watcher(notes)).run(name, given)
    except ExecutionError as error:
        kind = "undefined" if "nobody wrote" in error.message else "failed"
        failed.append(Finding(kind, "", str(error), place(error.place)))
    return notes.shown(failed, place)


def _argument(function: Function, position: int, array: Array) -> Argument:
    param, direction = function.params[position], function.param_directions[position]
    assert isinstance(param.type, TensorType)
    return Argument(param.name_hint, list(array.shape), str(param.type.dtype), direction.name)
