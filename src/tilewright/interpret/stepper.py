"""The stepping machine: runs a program as the machine does, through Python code that a debugger can follow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tilewright.core.enums import ForKind
from tilewright.core.expr import Expr
from tilewright.core.program import Program
from tilewright.core.stmt import BreakStmt, ForStmt, IfStmt, ReturnStmt, SpmdScopeStmt, WhileStmt
from tilewright.errors import ExecutionError
from tilewright.frontend.walk.walker import Listed
from tilewright.interpret.evaluator import Frame, Value
from tilewright.interpret.held_values import UNSET, shown
from tilewright.interpret.machine import Exit, Machine
from tilewright.interpret.stepped_code import Inner, Ran, SteppedCode
from tilewright.passes.barriers import has_barrier


class Lines:
    """A program's functions as Python code, which stops at the turns of some loops."""

    def __init__(self, program: Program, stops: frozenset[str] = frozenset()) -> None:
        functions = {function.name: function for function in program.function_list}
        self.code = SteppedCode(partial(has_barrier, functions), stops)
        self.functions = {name: self.code.function(function.body) for name, function in functions.items()}


class SteppingMachine(Machine):
    """Runs the functions of a program that was read in steps.

    With a seed, turns of parallel loops and blocks of grids come in an order that it decides. Loops whose variable is
    in `at` run unseen up to that turn.
    """

    def __init__(
        self, program: Program, seed: int | None = None, at: Mapping[str, int] | None = None, lines: Lines | None = None
    ) -> None:
        super().__init__(program)
        self.order = None if seed is None else random.Random(seed)
        self.at = dict(at or {})
        self.unseen = 0
        """How many loops are running up to the turn that they are entered at."""
        self.lines = lines or Lines(program, frozenset(self.at))

    def whole(self, frame: Frame) -> Exit | None:
        """Run a function from its first statement on, by the lines it was written in."""
        lines = None if self.unseen else self.lines.functions[frame.function.name]
        if lines is None:
            return super().whole(frame)
        stepper = Stepper(self, frame)
        stepper.entered(lines)()
        return stepper.left if stepper.left is not None and isinstance(stepper.left.stmt, ReturnStmt) else None

    def turns(self, stmt: ForStmt, indices: range) -> Iterator[int]:
        """Yield the indices of a loop, those of a parallel one in an order of their own."""
        return iter(self.in_order(indices) if stmt.kind is ForKind.Parallel else indices)

    def in_order(self, indices: range) -> Sequence[int]:
        """Return turns and blocks as they come, or as the seed shuffles them."""
        return indices if self.order is None else self.order.sample(indices, len(indices))


class Stepper:
    """One function being stepped through: what its Python code calls."""

    def __init__(self, machine: SteppingMachine, frame: Frame) -> None:
        self.machine, self.frame = machine, frame
        self.entries: list[Any] = machine.lines.code.entries
        self.left: Exit | None = None
        """How the last body was left."""

    def __repr__(self) -> str:
        return f"<the lines of {self.frame.function.name}>"

    def __call__(self, number: int) -> list[Any]:
        """Run the statements of a line; return what names stand for then."""
        entry: Ran = self.entries[number]
        for stmt in entry.stmts:
            self.machine.stmt(self.frame, stmt)
        return [self._seen(value) for value in entry.values]

    def test(self, number: int) -> bool:
        """Return whether the condition of a branch or a loop holds."""
        stmt: IfStmt | WhileStmt = self.entries[number]
        return bool(self.machine.value(self.frame, stmt.condition))

    def turns(self, number: int) -> Iterator[None]:
        """Yield once for each turn of a loop that is stepped through."""
        stmt: ForStmt | WhileStmt = self.entries[number]
        self.left = None
        for _ in self.machine.begin(self.frame, stmt):
            if self._is_unseen(stmt):
                if self._pass_over(stmt):
                    break
                continue
            yield
            self.machine.carry(self.frame, stmt, self.left)
            self.left = None

    def _is_unseen(self, stmt: ForStmt | WhileStmt | SpmdScopeStmt) -> bool:
        if isinstance(stmt, WhileStmt) or stmt.loop_var is None:
            return False
        wanted = self.machine.at.get(stmt.loop_var.name_hint)
        return wanted is not None and self.frame.values[stmt.loop_var] != wanted

    def _pass_over(self, stmt: ForStmt | WhileStmt) -> bool:
        """Run a turn that nobody looks at; return whether it ends the loop."""
        left = self._unseen(stmt)
        if left is not None and isinstance(left.stmt, ReturnStmt):
            raise ExecutionError("the kernel returns before the turn that it is to be entered at", spans=[stmt.span])
        is_break = left is not None and isinstance(left.stmt, BreakStmt)
        if is_break:
            self.left = left
        else:
            self.machine.carry(self.frame, stmt, left)
        return is_break

    def _unseen(self, stmt: ForStmt | WhileStmt | SpmdScopeStmt) -> Exit | None:
        """Run a body that nobody looks at; return how it is left."""
        self.machine.unseen += 1
        try:
            return self.machine.body(self.frame, stmt.body)
        finally:
            self.machine.unseen -= 1

    def stops(self, number: int) -> bool:
        """Return whether a debugger opens here, at the turn that a loop is entered at: once, in the last of them."""
        stmt: ForStmt | SpmdScopeStmt = self.entries[number]
        assert stmt.loop_var is not None
        return self.machine.at.pop(stmt.loop_var.name_hint, None) is not None and not self.machine.at

    def ended(self, number: int) -> None:
        """Bind what a loop has carried out."""
        self.machine.carry(self.frame, self.entries[number], self.left)
        self.machine.finish(self.frame, self.entries[number])
        self.left = None

    def merged(self, number: int) -> None:
        """Bind what a branch has yielded."""
        if self.left is not None:
            self.machine.merge(self.frame, self.entries[number], self.left)
        self.left = None

    def leave(self, number: int) -> Any:
        """Note how a body is left; return what that hands on."""
        self.left = self.machine.leave(self.frame, self.entries[number])
        pairs = zip(self.left.stmt.values, self.left.values, strict=True)
        seen = tuple(shown(expr, value) for expr, value in pairs)
        return seen[0] if len(seen) == 1 else seen or None

    def runs(self, number: int) -> bool:
        """Return whether a grid runs."""
        return self.machine.is_run(self.frame, self.entries[number])

    def blocks(self, number: int) -> Iterator[None]:
        """Yield once for each block of a grid."""
        stmt: SpmdScopeStmt = self.entries[number]
        for _ in self.machine.grid(self.frame, stmt, lambda own: None):
            if self._is_unseen(stmt):
                self._unseen(stmt)
            else:
                yield

    def rounds(self, number: int) -> None:
        """Run the blocks of a grid that wait for each other."""
        inner: Inner = self.entries[number]
        stmt: Any = inner.stmt
        for _ in self.machine.grid(self.frame, stmt, lambda own: Stepper(self.machine, own).entered(inner)()):
            pass

    def named(self, number: int) -> None:
        """Give the task of a scope its number."""
        self.machine.name_task(self.frame, self.entries[number].task)

    def inner(self, number: int) -> Callable[[], Any]:
        """Return a helper that is called here."""
        return self.entered(self.entries[number])

    def entered(self, inner: Inner) -> Callable[[], Any]:
        """Return a function to be called with nothing more: its parameters are what names stand for now."""
        return partial(inner.function, *map(self._seen, inner.values), self)

    def _seen(self, value: Value) -> Any:
        """Return what a name stands for, as it can be looked at."""
        if isinstance(value, Expr):
            try:
                return shown(value, self.machine.value(self.frame, value))
            except (ExecutionError, KeyError):
                return UNSET
        if isinstance(value, (tuple, list)):
            seen = [self._seen(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
            return seen if isinstance(value, (list, Listed)) else tuple(seen)
        if isinstance(value, dict):
            return {key: self._seen(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return value
