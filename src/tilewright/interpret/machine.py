"""The machine: runs a program statement by statement.

It runs programs before and after conversion to SSA: assigning a variable again simply replaces its value. Parallel
loops and blocks run one after the other, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from tilewright.core.expr import Absent, Expr, Var
from tilewright.core.grid import CURRENT
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.core.signature import symbols_told
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ExitStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import TileType
from tilewright.errors import ExecutionError
from tilewright.forks import computed_once
from tilewright.interpret.evaluator import Evaluator, Frame, Value
from tilewright.interpret.groups import run_together
from tilewright.interpret.skipped import NOTHING, Skipped
from tilewright.passes.accumulators import SHRINKS, accumulators
from tilewright.passes.barriers import has_barrier
from tilewright.passes.groups import Sides, sides_of
from tilewright.passes.identity import returned_parameters
from tilewright.records import record

T = TypeVar("T")


@record
class Exit:
    """How a body was left before its end."""

    stmt: YieldStmt | ReturnStmt | BreakStmt | ContinueStmt
    values: tuple[Value, ...]


class Machine(Evaluator):
    """Runs the functions of one program."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.program = program
        self.accumulators: dict[str, dict[Var, Expr]] = {}

    def run(self, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
        """Return what a function returns for `args`; tensors are written in place."""
        function = self.functions[name]
        symbols = symbols_told(function, lambda position, axis: args[position].data.shape[axis])
        frame = Frame(function, dict(zip(function.params, args, strict=True)), symbols)
        self.check_arguments(frame)
        sides = self.sides.get(name)
        left = self.whole(frame) if sides is None else self._group(frame, sides)
        return left.values if left is not None else ()

    def whole(self, frame: Frame) -> Exit | None:
        """Run a function from its first statement on."""
        return self.body(frame, frame.function.body)

    @computed_once
    def sides(self) -> Mapping[str, Sides]:
        """What runs at the same time in each group."""
        return sides_of(self.program)

    def _group(self, frame: Frame, sides: Sides) -> Exit | None:
        """Run a body whose calls meet in pipes: all of them where the first stands."""
        known = returned_parameters(self.program.function_list)
        for stmt in frame.function.body:
            if sides.begins(stmt):
                evaluate = partial(self._handed_on, frame)
                run_together(sides, self.run, evaluate, lambda s, v: self.bind(frame, s.var, v), known.__getitem__)
            elif not sides.has(stmt) and (left := self.stmt(frame, stmt)) is not None:
                return left
        return None

    def bind(self, frame: Frame, var: Var, value: Value) -> None:
        """Let a variable hold a value from here on, or nothing."""
        if value is NOTHING:
            frame.values.pop(var, None)
        else:
            frame.values[var] = value

    def _hand_on(self, frame: Frame, var: Var, value: Value) -> None:
        """Bind what a loop carries or a branch yields: of a tile, the valid part."""
        is_tile = isinstance(value, Region) and isinstance(var.type, TileType)
        self.bind(frame, var, value.forgotten() if is_tile else value)

    def _handed_on(self, frame: Frame, expr: Expr) -> Value:
        """Return what a loop or branch hands on: nothing for a variable that no turn has bound yet."""
        is_nothing = isinstance(expr, Absent) or (isinstance(expr, Var) and expr not in frame.values)
        return NOTHING if is_nothing else self.value(frame, expr)

    def body(self, frame: Frame, body: SeqStmts) -> Exit | None:
        """Run statements in order; return how they were left before their end."""
        for stmt in body:
            left = self.stmt(frame, stmt)
            if left is not None:
                return left
        return None

    def stmt(self, frame: Frame, stmt: Stmt) -> Exit | None:
        """Run one statement; return how it leaves the body that it stands in."""
        match stmt:
            case AssignStmt():
                self.bind(frame, stmt.var, self.value(frame, stmt.value))
            case EvalStmt():
                self.value(frame, stmt.expr)
            case YieldStmt() | ReturnStmt() | BreakStmt() | ContinueStmt():
                return self.leave(frame, stmt)
            case ForStmt() | WhileStmt():
                return self._loop(frame, stmt)
            case IfStmt():
                return self._if(frame, stmt)
            case SpmdScopeStmt():
                return self._spmd(frame, stmt)
            case _:
                left = self.body(frame, stmt.body)
                self.name_task(frame, getattr(stmt, "task", None))
                return left
        return None

    def leave(self, frame: Frame, stmt: ExitStmt) -> Exit:
        """Return how a statement leaves its body, with what it hands on."""
        given = self.value if isinstance(stmt, ReturnStmt) else self._handed_on
        return Exit(stmt, tuple(given(frame, value) for value in stmt.values))

    def _for(self, frame: Frame, stmt: ForStmt) -> Iterator[None]:
        start, stop, step = (self.value(frame, e) for e in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            raise ExecutionError("a loop's step cannot be zero", spans=[stmt.span])
        for index in self.turns(stmt, range(start, stop, step)):
            frame.values[stmt.loop_var] = index
            yield

    def turns(self, stmt: ForStmt, indices: range) -> Iterator[int]:
        """Yield the indices of a loop, one turn after the other."""
        return iter(indices)

    def _while(self, frame: Frame, stmt: WhileStmt) -> Iterator[None]:
        while self.value(frame, stmt.condition):
            yield

    def begin(self, frame: Frame, stmt: ForStmt | WhileStmt) -> Iterator[None]:
        """Return the turns of a loop, whose carried variables hold what they start as."""
        for arg, value in [(arg, self._handed_on(frame, arg.init)) for arg in stmt.iter_args]:
            self._hand_on(frame, arg.var, value)
        return self._for(frame, stmt) if isinstance(stmt, ForStmt) else self._while(frame, stmt)

    def carry(self, frame: Frame, stmt: ForStmt | WhileStmt, left: Exit | None) -> None:
        """Let the next turn of a loop, or what follows it, have what a turn has left behind."""
        if left is not None and left.values:
            for arg, value in zip(stmt.iter_args, left.values, strict=True):
                self._keep(frame, arg.var, value)
                self._hand_on(frame, arg.var, value)

    def finish(self, frame: Frame, stmt: ForStmt | WhileStmt) -> None:
        """Bind what a loop has carried out."""
        for result, arg in zip(stmt.return_vars, stmt.iter_args, strict=True):
            self.bind(frame, result, self._handed_on(frame, arg.var))

    def _loop(self, frame: Frame, stmt: ForStmt | WhileStmt) -> Exit | None:
        """Run a body per turn; what it yields is carried to the next one and, at the end, out."""
        for _ in self.begin(frame, stmt):
            left = self.body(frame, stmt.body)
            if left is not None and isinstance(left.stmt, ReturnStmt):
                return left
            self.carry(frame, stmt, left)
            if left is not None and isinstance(left.stmt, BreakStmt):
                break
        self.finish(frame, stmt)
        return None

    def _keep(self, frame: Frame, var: Var, value: Value) -> None:
        """Raise where a new value of an accumulator is valid in less than what it was computed from."""
        held = frame.values.get(var)
        if not isinstance(held, Region) or not isinstance(value, Region) or held.is_made:
            return
        shrinks = any(new < old for new, old in zip(value.valid, held.valid, strict=True))
        computed = self._accumulators(frame.function).get(var) if shrinks else None
        if computed is not None:
            error = ExecutionError(SHRINKS.format(name=var.name_hint), spans=[computed.span])
            error.function = self.author(frame)
            raise error

    def _accumulators(self, function: Function) -> dict[Var, Expr]:
        if function.name not in self.accumulators:
            self.accumulators[function.name] = accumulators(function)
        return self.accumulators[function.name]

    def _if(self, frame: Frame, stmt: IfStmt) -> Exit | None:
        taken = stmt.then_body if self.value(frame, stmt.condition) else stmt.else_body
        left = self.body(frame, taken) if taken is not None else None
        if left is None or not isinstance(left.stmt, YieldStmt):
            return left
        self.merge(frame, stmt, left)
        return None

    def merge(self, frame: Frame, stmt: IfStmt, left: Exit) -> None:
        """Bind what a branch yields."""
        for var, value in zip(stmt.return_vars, left.values if stmt.return_vars else (), strict=True):
            self._hand_on(frame, var, value)

    def _spmd(self, frame: Frame, stmt: SpmdScopeStmt) -> Exit | None:
        if self.is_run(frame, stmt):
            for left in self.grid(frame, stmt, lambda own: self.body(own, stmt.body)):
                if left is not None:
                    return left
        self.name_task(frame, stmt.task)
        return None

    def is_run(self, frame: Frame, stmt: SpmdScopeStmt) -> bool:
        """Return whether a grid runs; where it does not, its names stand for what they stand for then."""
        if stmt.predicate is None or self.value(frame, stmt.predicate):
            return True
        Skipped(self.functions, frame.values, lambda var, value: self.bind(frame, var, value)).body(stmt.body)
        return False

    def grid(self, frame: Frame, stmt: SpmdScopeStmt, run: Callable[[Frame], T]) -> Iterator[T]:
        """Yield what each block of a grid gives, run in a frame in which it knows its index."""
        count = self.value(frame, stmt.core_num)
        together = has_barrier(self.functions, stmt.body)
        frames = [replace(frame, values=dict(frame.values)) for _ in range(count if together else 0)]

        def block(index: int) -> T:
            own = frames[index] if together else frame
            if stmt.loop_var is not None:
                own.values[stmt.loop_var] = CURRENT.get().index
            return run(own)

        yield from self.each(count, together, block)
        frame.values.update(frames[-1].values if frames else {})

    def name_task(self, frame: Frame, task: Var | None) -> None:
        """Let the variable of a task, where it has one, hold a new task's number."""
        if task is not None:
            frame.values[task] = next(self.tasks)


def run(program: Program, name: str, args: Sequence[Region | int | float | bool]) -> tuple[Value, ...]:
    """Run one function of a program; tensors among `args` are written in place."""
    return Machine(program).run(name, args)
