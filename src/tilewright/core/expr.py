"""Expressions: values a program names, writes down or computes.

Scalar arithmetic nests (`i * 64 + 1` is one expression); ops on tensors and tiles stand alone on the right of an
assignment. Expressions compare by what they say, never by where they were written; a variable is only equal to itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from tilewright.core.node import node
from tilewright.core.op import Op
from tilewright.core.types import ScalarType, SymbolicExtent, TupleType, Type
from tilewright.dtypes import BOOL, FP32, INDEX, DataType, objection, round_scalar, show_number
from tilewright.errors import OperandError
from tilewright.records import record
from tilewright.source import UNKNOWN, Span


@record
class ParameterName:
    """A parameter, named by an attribute of its function."""

    name: str


Attribute: TypeAlias = "None | bool | int | float | str | Enum | DataType | ParameterName | tuple[Attribute, ...]"


class Expr(SymbolicExtent):
    """Anything that has a type."""

    __slots__ = ()
    type: Type
    span: Span

    def _key(self) -> object:
        """What the expression says: equal keys, equal expressions."""
        return id(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Expr) and type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return _show(self)


@dataclass(eq=False, slots=True, repr=False)
class Var(Expr):
    """A named value. `bounds` are the least and largest value of a scalar, where they are known."""

    name_hint: str
    type: Type
    span: Span = UNKNOWN
    bounds: tuple[int, int] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Var({self.name_hint!r}, {self.type})"


@node
class Symbol(Expr):
    """An extent the caller's tensors decide: the IR side of `pl.dynamic`. Equal names are one symbol."""

    name: str
    span: Span = UNKNOWN

    def _key(self) -> object:
        return self.name

    @property
    def type(self) -> ScalarType:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Symbols count elements."""
        return ScalarType(INDEX)


@node
class Const(Expr):
    """A number of the program, one that its type holds.

    Equal means the same type and the same bits: -0.0 is not 0.0, NaN is NaN.
    """

    value: int | float | bool
    dtype: DataType
    span: Span = UNKNOWN

    @property
    def type(self) -> ScalarType:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The scalar type of the number."""
        return ScalarType(self.dtype)

    def _key(self) -> object:
        if isinstance(self.value, float):
            return self.dtype, "nan" if self.value != self.value else struct.pack("<d", self.value)
        return self.dtype, int(self.value)


class ConstInt(Const):
    """An integer constant."""

    __slots__ = ()


class ConstFloat(Const):
    """A floating-point constant."""

    __slots__ = ()


class ConstBool(Const):
    """True or False."""

    __slots__ = ()


@node
class MakeTuple(Expr):
    """Several values written together, as in the offsets of a load."""

    elements: tuple[Expr, ...]
    span: Span = UNKNOWN

    def _key(self) -> object:
        return self.elements

    @property
    def type(self) -> TupleType:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The tuple of the elements' types."""
        return TupleType(tuple(element.type for element in self.elements))


@node
class TupleGetItem(Expr):
    """One of the values a call returned."""

    value: Expr
    index: int
    type: Type
    span: Span = UNKNOWN

    def _key(self) -> object:
        return self.value, self.index, self.type


@node
class Absent(Expr):
    """An optional operand nobody gave."""

    span: Span = UNKNOWN

    def _key(self) -> object:
        return None

    @property
    def type(self) -> TupleType:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Nothing has no type."""
        return TupleType()


ABSENT = Absent()


@node
class Call(Expr):
    """An op applied to operands; `attributes` are its static options, in declaration order."""

    op: Op
    args: tuple[Expr, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    type: Type
    span: Span = UNKNOWN

    def _key(self) -> object:
        return self.op, self.args, self.attributes, self.type

    @property
    def kwargs(self) -> Mapping[str, Attribute]:
        """The static options by name."""
        return dict(self.attributes)


@record
class GlobalVar:
    """A function of the program, by name."""

    name: str


@node
class Invoke(Expr):
    """A call of another function of the program; one with a `device` is dispatched to that rank."""

    op: GlobalVar
    args: tuple[Expr, ...]
    type: Type
    span: Span = UNKNOWN
    device: Expr | None = None

    def _key(self) -> object:
        return self.op, self.args, self.type, self.device


@node
class Submit(Expr):
    """A dispatched call: its results, and the id of the task that makes them.

    `deps` are tasks that must have ended before; an executor that runs tasks in program order has nothing to wait for.
    With `core_num` the function runs once per block. Where `predicate` does not hold the task is skipped: nothing is
    written, and its results are the tensors it was given, as they are. `dumps` are arguments to look at when it is
    dispatched, `attributes` what else was said about that; neither changes a result.
    """

    op: GlobalVar
    args: tuple[Expr, ...]
    deps: tuple[Expr, ...]
    core_num: Expr | None
    type: Type
    span: Span = UNKNOWN
    predicate: Expr | None = None
    dumps: tuple[Expr, ...] = ()
    attributes: tuple[tuple[str, Attribute], ...] = ()

    def _key(self) -> object:
        said = self.predicate, self.dumps, self.attributes
        return self.op, self.args, self.deps, self.core_num, self.type, said


def integer(value: int, dtype: DataType = INDEX, span: Span = UNKNOWN) -> Const:
    """Return an integer constant; without a dtype, one that counts or indexes."""
    if dtype is INDEX and -(1 << 63) <= value < 1 << 63:
        return ConstInt(value, dtype, span)  # by far the most of them
    return constant(value, dtype, span)


def constant(value: int | float | bool, dtype: DataType | None = None, span: Span = UNKNOWN) -> Const:
    """Return a number as a constant of `dtype`, or of the type a literal in a kernel has.

    Its value is kept, rounded to the nearest where the type is one of floats; OperandError where the type has none
    like it.
    """
    if dtype is None:
        dtype = literal_type(value)
    if reason := objection(value, dtype):
        message = f"{show_number(value)} is not a number {dtype} can hold"
        raise OperandError(message, spans=[span] if span.is_known else (), help=reason)
    if dtype.is_float():
        return ConstFloat(float(round_scalar(value, dtype)), dtype, span)
    if dtype == BOOL:
        return ConstBool(bool(value), dtype, span)
    return ConstInt(value if isinstance(value, int) and not isinstance(value, bool) else int(value), dtype, span)


def literal_type(value: int | float | bool) -> DataType:
    """Return the type that a number written in a kernel has where it meets none; a typed one has its own."""
    own: DataType | None = getattr(type(value), "dtype", None)
    if own is not None:
        return own
    return BOOL if isinstance(value, bool) else INDEX if isinstance(value, int) else FP32


def _show(expr: Expr) -> str:
    """Return an expression as messages write it."""
    match expr:
        case Var():
            return expr.name_hint
        case Symbol():
            return expr.name
        case Const():
            return str(expr.value)
        case MakeTuple():
            return f"[{', '.join(map(_show, expr.elements))}]"
        case TupleGetItem():
            return f"{_show(expr.value)}[{expr.index}]"
        case Call() if expr.op.spec.symbol and len(expr.args) == 2:
            lhs, rhs = (f"({_show(a)})" if isinstance(a, Call) else _show(a) for a in expr.args)
            return f"{lhs} {expr.op.spec.symbol} {rhs}"
        case Call() | Invoke() | Submit():
            return f"{expr.op.name}({', '.join(map(_show, expr.args))})"
        case _:
            return "None"
