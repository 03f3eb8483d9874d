"""The machine: runs a program statement by statement.

It runs programs before and after conversion to SSA: assigning a variable again simply replaces its value. Parallel
loops and blocks run one after the other, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
    ForStmt,
    IfStmt,
    IterArg,
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
        left = self._body(frame, function.body) if sides is None else self._group(frame, sides)
        return left.values if left is not None else ()

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
            elif not sides.has(stmt) and (left := self._stmt(frame, stmt)) is not None:
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

    def _body(self, frame: Frame, body: SeqStmts) -> Exit | None:
        for stmt in body:
            left = self._stmt(frame, stmt)
            if left is not None:
                return left
        return None

    def _stmt(self, frame: Frame, stmt: Stmt) -> Exit | None:
        match stmt:
            case AssignStmt():
                self.bind(frame, stmt.var, self.value(frame, stmt.value))
            case EvalStmt():
                self.value(frame, stmt.expr)
            case YieldStmt() | ReturnStmt() | BreakStmt() | ContinueStmt():
                given = self.value if isinstance(stmt, ReturnStmt) else self._handed_on
                return Exit(stmt, tuple(given(frame, value) for value in stmt.values))
            case ForStmt():
                return self._for(frame, stmt)
            case WhileStmt():
                return self._while(frame, stmt)
            case IfStmt():
                return self._if(frame, stmt)
            case SpmdScopeStmt():
                return self._spmd(frame, stmt)
            case _:
                left = self._body(frame, stmt.body)
                self._name_task(frame, getattr(stmt, "task", None))
                return left
        return None

    def _for(self, frame: Frame, stmt: ForStmt) -> Exit | None:
        start, stop, step = (self.value(frame, e) for e in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            raise ExecutionError("a loop's step cannot be zero", spans=[stmt.span])

        def turns() -> Iterator[None]:
            for index in self.turns(stmt, range(start, stop, step)):
                frame.values[stmt.loop_var] = index
                yield

        return self._loop(frame, turns(), stmt.iter_args, stmt.return_vars, stmt.body)

    def turns(self, stmt: ForStmt, indices: range) -> Iterator[int]:
        """Yield the indices of a loop, one turn after the other."""
        return iter(indices)

    def _while(self, frame: Frame, stmt: WhileStmt) -> Exit | None:
        def turns() -> Iterator[None]:
            while self.value(frame, stmt.condition):
                yield

        return self._loop(frame, turns(), stmt.iter_args, stmt.return_vars, stmt.body)

    def _loop(
        self, frame: Frame, turns: Iterator[None], carried: Sequence[IterArg], results: Sequence[Var], body: SeqStmts
    ) -> Exit | None:
        """Run a body per turn; what it yields is carried to the next one and, at the end, out."""
        for arg, value in [(arg, self._handed_on(frame, arg.init)) for arg in carried]:
            self._hand_on(frame, arg.var, value)
        for _ in turns:
            left = self._body(frame, body)
            if left is not None and isinstance(left.stmt, ReturnStmt):
                return left
            if left is not None and left.values:
                for arg, value in zip(carried, left.values, strict=True):
                    self._keep(frame, arg.var, value)
                    self._hand_on(frame, arg.var, value)
            if left is not None and isinstance(left.stmt, BreakStmt):
                break
        for result, arg in zip(results, carried, strict=True):
            self.bind(frame, result, self._handed_on(frame, arg.var))
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
        left = self._body(frame, taken) if taken is not None else None
        if left is None or not isinstance(left.stmt, YieldStmt):
            return left
        if not stmt.return_vars:
            return None
        for var, value in zip(stmt.return_vars, left.values, strict=True):
            self._hand_on(frame, var, value)
        return None

    def _spmd(self, frame: Frame, stmt: SpmdScopeStmt) -> Exit | None:
        count = self.value(frame, stmt.core_num)
        if stmt.predicate is None or self.value(frame, stmt.predicate):
            together = has_barrier(self.functions, stmt.body)
            frames = [replace(frame, values=dict(frame.values)) for _ in range(count if together else 0)]
            for left in self.each(count, together, lambda k: self._block(frames[k] if together else frame, stmt)):
                if left is not None:
                    return left
            frame.values.update(frames[-1].values if frames else {})
        else:
            Skipped(self.functions, frame.values, lambda var, value: self.bind(frame, var, value)).body(stmt.body)
        self._name_task(frame, stmt.task)
        return None

    def _block(self, frame: Frame, stmt: SpmdScopeStmt) -> Exit | None:
        if stmt.loop_var is not None:
            frame.values[stmt.loop_var] = CURRENT.get().index
        return self._body(frame, stmt.body)

    def _name_task(self, frame: Frame, task: Var | None) -> None:
        if task is not None:
            frame.values[task] = next(self.tasks)


def run(program: Program, name: str, args: Sequence[Region | int | float | bool]) -> tuple[Value, ...]:
    """Run one function of a program; tensors among `args` are written in place."""
    return Machine(program).run(name, args)
