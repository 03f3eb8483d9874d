"""The machine: runs a program statement by statement, each op by its declared meaning.

It runs programs before and after conversion to SSA: assigning a variable again simply replaces its value. Parallel
loops and blocks run one after the other, in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tilewright.core.build import arguments
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.grid import CURRENT, Block
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
from tilewright.core.types import Extent, TensorType, TileType
from tilewright.errors import ExecutionError, InternalError, KernelError
from tilewright.interpret.skipped import NOTHING, Skipped, results_of
from tilewright.passes.accumulators import SHRINKS, accumulators
from tilewright.records import record
from tilewright.source import Span

Value: TypeAlias = Any
"""A region for tensors and tiles, a Python number for scalars, an array for arrays, a tuple for several."""


NO_MEMORY = "there is not enough memory for this\nmake tiles and tensors smaller, or work on a part at a time"


@record
class Exit:
    """How a body was left before its end."""

    stmt: YieldStmt | ReturnStmt | BreakStmt | ContinueStmt
    values: tuple[Value, ...]


@dataclass
class Frame:
    """One function being run: its variables and symbols."""

    function: Function
    values: dict[Var, Value] = field(default_factory=dict[Var, Value])
    symbols: Mapping[str, Extent] = field(default_factory=dict[str, Extent])


class Machine:
    """Runs the functions of one program."""

    def __init__(self, program: Program) -> None:
        self.functions = {f.name: f for f in program.function_list}
        self.tasks = itertools.count()
        self.accumulators: dict[str, dict[Var, Expr]] = {}

    def run(self, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
        """Return what a function returns for `args`; tensors are written in place."""
        function = self.functions[name]
        symbols = symbols_told(function, lambda position, axis: args[position].data.shape[axis])
        frame = Frame(function, dict(zip(function.params, args, strict=True)), symbols)
        self._check_arguments(frame)
        left = self._body(frame, function.body)
        return left.values if left is not None else ()

    def _check_arguments(self, frame: Frame) -> None:
        """Raise when an argument contradicts the signature: its bounds, a symbol or a formula."""
        for param in frame.function.params:
            if param.bounds is not None and not param.bounds[0] <= frame.values[param] <= param.bounds[1]:
                low, high = param.bounds
                message = f"`{param.name_hint}` is {frame.values[param]}, outside its bounds {low} to {high}"
                raise ExecutionError(message, spans=[param.span])
            if not isinstance(param.type, TensorType):
                continue
            for axis, (extent, have) in enumerate(zip(param.type.shape, frame.values[param].data.shape, strict=True)):
                if isinstance(extent, Expr) and self._expr(frame, extent) != have:
                    message = (
                        f"axis {axis} of `{param.name_hint}` is {have}, but {extent} is {self._expr(frame, extent)}"
                    )
                    raise ExecutionError(message, spans=[param.span])

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
        return NOTHING if is_nothing else self._expr(frame, expr)

    def _body(self, frame: Frame, body: SeqStmts) -> Exit | None:
        for stmt in body:
            left = self._stmt(frame, stmt)
            if left is not None:
                return left
        return None

    def _stmt(self, frame: Frame, stmt: Stmt) -> Exit | None:
        match stmt:
            case AssignStmt():
                self.bind(frame, stmt.var, self._expr(frame, stmt.value))
            case EvalStmt():
                self._expr(frame, stmt.expr)
            case YieldStmt() | ReturnStmt() | BreakStmt() | ContinueStmt():
                given = self._expr if isinstance(stmt, ReturnStmt) else self._handed_on
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
        start, stop, step = (self._expr(frame, e) for e in (stmt.start, stmt.stop, stmt.step))
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
            while self._expr(frame, stmt.condition):
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
            error.function = frame.function.name
            raise error

    def _accumulators(self, function: Function) -> dict[Var, Expr]:
        if function.name not in self.accumulators:
            self.accumulators[function.name] = accumulators(function)
        return self.accumulators[function.name]

    def _if(self, frame: Frame, stmt: IfStmt) -> Exit | None:
        taken = stmt.then_body if self._expr(frame, stmt.condition) else stmt.else_body
        left = self._body(frame, taken) if taken is not None else None
        if left is None or not isinstance(left.stmt, YieldStmt):
            return left
        if not stmt.return_vars:
            return None
        for var, value in zip(stmt.return_vars, left.values, strict=True):
            self._hand_on(frame, var, value)
        return None

    def _spmd(self, frame: Frame, stmt: SpmdScopeStmt) -> Exit | None:
        count = self._expr(frame, stmt.core_num)
        if stmt.predicate is None or self._expr(frame, stmt.predicate):
            for _ in self._blocks(count):
                if stmt.loop_var is not None:
                    frame.values[stmt.loop_var] = CURRENT.get().index
                left = self._body(frame, stmt.body)
                if left is not None:
                    return left
        else:
            Skipped(self.functions, frame.values, lambda var, value: self.bind(frame, var, value)).body(stmt.body)
        self._name_task(frame, stmt.task)
        return None

    def _blocks(self, count: int) -> Iterator[None]:
        """Let each block of a grid be the current one, one after the other."""
        for index in range(count):
            token = CURRENT.set(Block(index, count))
            try:
                yield
            finally:
                CURRENT.reset(token)

    def _name_task(self, frame: Frame, task: Var | None) -> None:
        if task is not None:
            frame.values[task] = next(self.tasks)

    def _expr(self, frame: Frame, expr: Expr) -> Value:
        match expr:
            case Var():
                return self._variable(frame, expr)
            case Const():
                return expr.value
            case Symbol():
                return frame.symbols[expr.name]
            case MakeTuple():
                return tuple(self._expr(frame, e) for e in expr.elements)
            case TupleGetItem():
                return self._expr(frame, expr.value)[expr.index]
            case Call():
                return self._call(frame, expr)
            case Invoke():
                return self._invoke(frame, expr)
            case Submit():
                return self._submit(frame, expr)
            case Absent():
                return None
            case _:
                raise InternalError(f"no meaning for {type(expr).__name__}")

    def _variable(self, frame: Frame, var: Var) -> Value:
        if var not in frame.values:
            raise ExecutionError(
                f"'{var.name_hint}' has no value here: the loop that binds it did not run", spans=[var.span]
            )
        return frame.values[var]

    def _call(self, frame: Frame, call: Call) -> Value:
        bound = {
            name: _operand(value, self._expr(frame, value)) if isinstance(value, Expr) else value
            for name, value in arguments(call).items()
        }
        try:
            result = self.evaluate(call, bound)
            return _traced(result, call.span) if isinstance(result, Region) else result
        except KernelError as error:
            error.locate([call.span])
            error.function = error.function or frame.function.name
            raise
        except ZeroDivisionError:
            raise _failed("division by zero", frame, call) from None
        except MemoryError:
            raise _failed(NO_MEMORY, frame, call) from None
        except InternalError:
            raise
        except Exception as error:  # an op's meaning refuses what its type rule let through
            message = f"{call.span}: in kernel `{frame.function.name}`: `{call.op.name}` cannot be evaluated"
            raise InternalError(f"{message}: {type(error).__name__}: {error}") from error

    def evaluate(self, call: Call, bound: Mapping[str, Value]) -> Value:
        """Return what an op gives for its arguments."""
        return call.op.spec.evaluate(call.type, **bound)

    def _invoke(self, frame: Frame, call: Invoke) -> Value:
        results = self._results(frame, call)
        return results[0] if len(results) == 1 else results

    def _results(self, frame: Frame, call: Invoke | Submit) -> tuple[Value, ...]:
        return self.run(call.op.name, [self._expr(frame, arg) for arg in call.args])

    def _submit(self, frame: Frame, call: Submit) -> tuple[Value, ...]:
        results: tuple[Value, ...] = ()
        if call.predicate is not None and not self._expr(frame, call.predicate):
            results = results_of(self.functions, call, [self._expr(frame, arg) for arg in call.args])
        elif call.core_num is None:
            results = self._results(frame, call)
        else:
            for _ in self._blocks(self._expr(frame, call.core_num)):
                results = self._results(frame, call)
        return (*results, next(self.tasks))


def _operand(expr: Expr, value: Value) -> Value:
    """Return an operand; a tensor whose memory is in an order of its own says so."""
    if isinstance(expr.type, TensorType) and expr.type.layout is not TensorLayout.ND:
        return replace(value, layout=expr.type.layout)
    return value


def _traced(result: Region, span: Span) -> Region:
    """Return what an op gives, with the place where undefined elements came into it if that is here."""
    if result.shadow is None or result.origin.is_known or result.is_defined:
        return result
    return replace(result, origin=span)


def _failed(text: str, frame: Frame, call: Call) -> ExecutionError:
    error = ExecutionError(text, spans=[call.span])
    error.function = frame.function.name
    return error


def run(program: Program, name: str, args: Sequence[Region | int | float | bool]) -> tuple[Value, ...]:
    """Run one function of a program; tensors among `args` are written in place."""
    return Machine(program).run(name, args)
