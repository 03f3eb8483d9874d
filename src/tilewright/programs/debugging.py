"""Debugging: programs run by the lines they were written in, for a debugger to follow."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

from tilewright.backends.interface import find
from tilewright.call.binding import Bound
from tilewright.call.launch import runner_of
from tilewright.core.access import OBSERVER
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt, SpmdScopeStmt
from tilewright.core.visitor import statements
from tilewright.forks import computed_once
from tilewright.frontend.programs import as_program
from tilewright.frontend.steps import stepwise
from tilewright.frontend.sub_workers import told
from tilewright.frontend.text import parse
from tilewright.interpret.eager import eager
from tilewright.interpret.stepped_ranks import run_stepped
from tilewright.interpret.stepper import Lines, SteppingMachine
from tilewright.interpret.unwritten import Unwritten
from tilewright.passes import chips, control_plane
from tilewright.programs.entry import Entry
from tilewright.programs.metadata import entry_of
from tilewright.programs.platforms import INTERPRETER


class SteppedProgram:
    """A program that was read in steps, and is run by them; it stands for its own code."""

    def __init__(
        self,
        program: Program,
        seed: int | None = None,
        at: Mapping[str, int] | None = None,
        lines: Lines | None = None,
        ranks: int = 1,
    ) -> None:
        if program.hosts:
            program = chips.run(control_plane.run(program))
        self.program, self.ranks = program, ranks
        self.machine = SteppingMachine(program, seed, at, lines)
        self.code = find(INTERPRETER).compile(program)

    @computed_once
    def entry(self) -> Entry:
        """What callers start."""
        return Entry(self.program, entry_of(self.program), self._run_bound)

    def _run_bound(self, bound: Bound) -> tuple[Any, ...]:
        """Run a call, and know meanwhile what nobody has written of the outputs that it allocated."""
        token = OBSERVER.set(Unwritten([bound.values[position].array for position in bound.made]))
        try:
            return runner_of(self)(bound)
        finally:
            OBSERVER.reset(token)

    def ordered(self, seed: int | None, at: Mapping[str, int] | None, ranks: int = 1) -> SteppedProgram:
        """Return the program with its parallel turns in a seed's order, loops entered at a turn, on so many ranks."""
        if seed is None and at is None and ranks == self.ranks:
            return self
        self._check_turns({} if at is None else at)
        return SteppedProgram(self.program, seed, at, None if at else self.machine.lines, ranks)

    def _check_turns(self, at: object) -> None:
        """Raise for what names no turns, or no loops: TypeError and ValueError."""
        turns: Mapping[object, object] = cast("Any", at) if isinstance(at, Mapping) else {None: None}
        if not all(isinstance(loop, str) and isinstance(turn, int) for loop, turn in turns.items()):
            raise TypeError(f'`at` takes the turns of loops by their variables, as in at={{"i": 5}}, got {at!r}')
        bodies = [statements(function.body) for function in self.program.functions.values()]
        found = [stmt for body in bodies for stmt in body if isinstance(stmt, (ForStmt, SpmdScopeStmt))]
        loops = {stmt.loop_var.name_hint for stmt in found if stmt.loop_var is not None and self._has_turns(stmt)}
        if unknown := [loop for loop in turns if loop not in loops]:
            there = ", ".join(sorted(loops)) or "none"
            others = "what is written out, as over a list, has no turns, nor have blocks that wait for each other"
            raise ValueError(f"no loop of {self.program.name} is over `{unknown[0]}`: there is {there}; {others}")

    def _has_turns(self, stmt: ForStmt | SpmdScopeStmt) -> bool:
        """Return whether turns run one after the other: blocks that wait for each other do not."""
        return isinstance(stmt, ForStmt) or not self.machine.lines.code.has_barrier(stmt.body)

    def run(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return what a function gives; ValueError where no loop came to the turn that it was to be entered at."""
        with _debugger(), _breakpoints(), eager():
            results = self._results(name, args)
        for loop, turn in self.machine.at.items():
            raise ValueError(f"no loop of {self.program.name} had a turn {loop} = {turn}")
        return results

    def _results(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        if not self.program.hosts:
            return self.machine.run(name, args)
        return run_stepped(self.machine, self.ranks, name, args, lambda function: told(self.program[function]))

    def address(self, name: str) -> None:
        """Return nothing: Python stands for the host function."""


def in_steps(source: Program) -> SteppedProgram:
    """Return a program read once more, in steps: from its own text, or from what it prints where that is gone."""
    with stepwise():
        again = source.again() if source.again is not None else as_program(parse(str(source), {}, f"<{source.name}>"))
    return SteppedProgram(again)


@contextmanager
def _breakpoints() -> Generator[None]:
    """Have `breakpoint()` open a pdb that steps over this package's own lines, unless somebody has another debugger.

    What PYTHONBREAKPOINT names looks at the frame that calls it, so nothing stands between.
    """
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT", "").strip():
        yield
        return
    sys.breakpointhook = _open
    try:
        yield
    finally:
        sys.breakpointhook = sys.__breakpointhook__


def _debugger() -> AbstractContextManager[None]:
    """Have the debugger that follows this thread, where there is one, step over this package's own lines."""
    trace = sys.gettrace()
    if trace is None:
        return nullcontext()
    from tilewright.programs.kernel_pdb import followed

    return followed(getattr(trace, "__self__", None))


def _open() -> None:
    from tilewright.programs.kernel_pdb import KernelPdb

    KernelPdb().set_trace(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
