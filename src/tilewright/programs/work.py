"""Work: how many operations a call of a program makes at least, and how many bytes it loads and stores.

Loops count as often as they turn, by their bounds where the call tells them; of two branches the longer one counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tilewright.core.expr import Call, Const, Expr, Invoke, Submit, Symbol, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.signature import symbols_told
from tilewright.core.stmt import ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.core.visitor import bodies, expressions, subexpressions
from tilewright.dtypes import DataType
from tilewright.errors import ExecutionError
from tilewright.interpret.evaluator import Frame
from tilewright.interpret.machine import Machine
from tilewright.passes.products import BIASED, PRODUCTS, SUMS
from tilewright.records import mutable, record

_MULTIPLIED = (*PRODUCTS, *SUMS, *BIASED)
_COUNTED = ("elementwise", "expansion", "mapped", "reduction", "partial", "scan")
"""The families of ops that compute once for each element."""


@mutable
class Work:
    """Operations, and bytes loaded and stored."""

    flops: float = 0.0
    products: float = 0.0
    """How many of them are those of matrix products."""
    multiplied: DataType | None = None
    """What the factors of most of these hold."""
    loaded: float = 0.0
    stored: float = 0.0

    @property
    def product(self) -> DataType | None:
        """What its matrices hold, where most of it multiplies them."""
        return self.multiplied if self.products > 0.5 * self.flops else None

    def add(self, other: Work, times: float = 1.0) -> None:
        """Let something count so often."""
        if times * other.products > self.products:
            self.multiplied = other.multiplied
        self.flops += times * other.flops
        self.products += times * other.products
        self.loaded += times * other.loaded
        self.stored += times * other.stored


@record
class Shaped:
    """What stands for a tensor where only its extents matter."""

    shape: tuple[int, ...]


@mutable
class Counter:
    """The functions of a lowered program, counted for one call."""

    program: Program
    ranks: int = 1
    """How often loops turn whose bounds no call tells: those over ranks."""
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        """Have a machine work out bounds."""
        self.machine = Machine(self.program)

    def call(self, function: Function, args: Sequence[Any]) -> Work:
        """Return the work of a function called with tensors of some shapes, and numbers; None for what is unknown."""
        symbols = symbols_told(function, lambda position, axis: _extent(args[position], axis))
        frame = Frame(function, dict(zip(function.params, args, strict=True)), symbols)
        return self.body(frame, function.body)

    def body(self, frame: Frame, body: SeqStmts) -> Work:
        """Return the work of statements."""
        work = Work()
        for stmt in body:
            work.add(self._stmt(frame, stmt))
        return work

    def _stmt(self, frame: Frame, stmt: Stmt) -> Work:
        work = Work()
        for expr in expressions(stmt):
            if isinstance(expr, Call):
                work.add(_op(expr))
            elif isinstance(expr, (Invoke, Submit)):
                blocks = self._number(frame, expr.core_num) if isinstance(expr, Submit) and expr.core_num else 1
                args = [self._value(frame, arg) for arg in expr.args]
                work.add(self.call(self.program[expr.op.name], args), 1 if blocks is None else blocks)
        if isinstance(stmt, IfStmt):
            work.add(max((self.body(frame, each) for each in bodies(stmt)), key=lambda w: w.flops + w.loaded))
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            work.add(self.body(frame, stmt.body), self._turns(frame, stmt))
        else:
            for each in bodies(stmt):
                work.add(self.body(frame, each))
        return work

    def _turns(self, frame: Frame, stmt: ForStmt | WhileStmt) -> int:
        if isinstance(stmt, WhileStmt):
            return 1
        start, stop, step = (self._number(frame, each) for each in (stmt.start, stmt.stop, stmt.step))
        if start is None or stop is None or not step:
            return self.ranks
        frame.values[stmt.loop_var] = start
        return len(range(start, stop, step))

    def _number(self, frame: Frame, expr: Expr) -> int | None:
        found = self._value(frame, expr)
        return found if isinstance(found, int) else None

    def _value(self, frame: Frame, expr: Expr) -> Any:
        """Return a number, or something with a tensor's shape; None where only a run would tell."""
        type_ = expr.type
        if isinstance(type_, (TensorType, TileType)):
            passed = frame.values.get(expr) if isinstance(expr, Var) else None
            return Shaped(tuple(n if isinstance(n, int) else 1 for n in type_.shape)) if passed is None else passed
        if not all(_is_told(frame, each) for each in subexpressions(expr)):
            return None
        try:
            return self.machine.value(frame, expr)
        except ExecutionError:  # it divides by zero, say
            return None


def _is_told(frame: Frame, expr: Expr) -> bool:
    """Return whether a part of a scalar follows from the arguments of a call and the turns of loops."""
    match expr:
        case Var():
            return frame.values.get(expr) is not None
        case Symbol():
            return expr.name in frame.symbols
        case Call():
            return expr.op.kind is Kind.SCALAR
        case _:
            return isinstance(expr, Const)


def _extent(arg: Any, axis: int) -> int:
    return arg.shape[axis] if hasattr(arg, "shape") else 1


def _op(call: Call) -> Work:
    spec = call.op.spec
    sizes = [_elements(each) for each in (*call.args, call)]
    if spec.name in _MULTIPLIED:
        factors = [arg.type for arg in call.args if isinstance(arg.type, TileType)][-2:]
        flops = 2 * math.sqrt(math.prod(math.prod(factor.shape) for factor in factors) * sizes[-1])
        return Work(flops, flops, factors[0].dtype)
    if spec.name in ("load", "store"):
        types = [each.type for each in (call, *call.args)]
        moved = next((math.prod(t.shape) * t.dtype.get_byte() for t in types if isinstance(t, TileType)), 0)
        return Work(loaded=moved) if spec.name == "load" else Work(stored=moved)
    if spec.name in ("read", "write"):
        return _element(call)
    if call.op.kind is Kind.SCALAR:
        return Work(flops=float(spec.name != "cast" and any(map(_is_float, (call, *call.args)))))
    return Work(flops=float(max(sizes))) if spec.family in _COUNTED else Work()


def _element(call: Call) -> Work:
    """Return what one element takes that is read from a tensor, or written to one."""
    type_ = call.args[0].type
    moved = type_.dtype.get_byte() if isinstance(type_, TensorType) else 0
    return Work(loaded=moved) if call.op.spec.name == "read" else Work(stored=moved)


def _is_float(expr: Expr) -> bool:
    """Return whether a number is a float: others count and address."""
    return isinstance(expr.type, ScalarType) and expr.type.dtype.is_float()


def _elements(expr: Expr) -> int:
    type_ = expr.type
    return math.prod(type_.shape) if isinstance(type_, TileType) else 0
