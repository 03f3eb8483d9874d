"""Extents as scalar expressions and back, and how far an expression can reach."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.core.expr import Call, Const, ConstInt, Expr, Symbol, Var, integer
from tilewright.core.op import Interval
from tilewright.core.types import Extent, ScalarType, Shape
from tilewright.dtypes import DataType


def as_extent(expr: Expr) -> Extent:
    """Return a scalar expression as an extent: an int, a formula over symbols, or unknown."""
    if isinstance(expr, ConstInt) and isinstance(expr.value, int):
        return expr.value  # as it is: an extent may remember which argument it came from
    if isinstance(expr, Const):
        return int(expr.value)
    return expr if is_symbolic(expr) else None


def dtype_of(scalar: Expr) -> DataType:
    """Return the type of a scalar operand."""
    assert isinstance(scalar.type, ScalarType)
    return scalar.type.dtype


def product(extents: Sequence[Extent]) -> int | None:
    """Return how many elements extents enclose, None where one is known to the running program only."""
    known = [extent for extent in extents if isinstance(extent, int)]
    return prod(known) if len(known) == len(extents) else None


def as_shape(exprs: Sequence[Expr]) -> Shape:
    """Return scalar expressions as a shape."""
    return tuple(as_extent(expr) for expr in exprs)


def as_scalar(extent: Extent) -> Expr:
    """Return a known extent as a scalar expression; ValueError for an unknown one."""
    if isinstance(extent, int):
        return integer(extent)
    if not isinstance(extent, Expr):
        raise ValueError("an extent only the running program knows has no expression")
    return extent


def is_symbolic(expr: Expr) -> bool:
    """Return whether an expression is made of symbols and constants only."""
    if isinstance(expr, Call):
        return all(isinstance(arg, Const) or is_symbolic(arg) for arg in expr.args)
    return isinstance(expr, Symbol)


def symbols_in(extent: Extent) -> frozenset[str]:
    """Return the names an extent depends on."""
    if isinstance(extent, Symbol):
        return frozenset((extent.name,))
    if isinstance(extent, Call):
        return frozenset[str]().union(*(symbols_in(arg) for arg in extent.args))
    return frozenset()


def bounds(expr: Expr) -> Interval | None:
    """Return the least and largest value an integer expression can have, where its variables' bounds tell.

    What may be more than its type holds wraps around, and could be anything.
    """
    if isinstance(expr, ConstInt):
        return int(expr.value), int(expr.value)
    if isinstance(expr, Var):
        return expr.bounds
    if not (isinstance(expr, Call) and len(expr.args) == 2 and expr.op.spec.interval):
        return None
    lhs, rhs = (bounds(arg) for arg in expr.args)
    if not (lhs and rhs and isinstance(expr.type, ScalarType)):
        return None
    reach, (least, most) = expr.op.spec.interval(lhs, rhs), expr.type.dtype.limits
    return reach if reach and least <= reach[0] and reach[1] <= most else None


def fits(offset: Expr, size: Extent, extent: Extent) -> bool | None:
    """Return whether `offset .. offset + size` lies inside `0 .. extent`: yes, no, or None for "who knows"."""
    reach = bounds(offset)
    if isinstance(offset, Const) and offset.value == 0 and size is not None and size == extent:
        return True
    if not isinstance(size, int) or not isinstance(extent, int):
        return False if reach and reach[1] < 0 else None
    if reach is None:
        return False if size > extent else None
    if 0 <= reach[0] and reach[1] + size <= extent:
        return True
    return False if reach[1] < 0 or reach[0] + size > extent else None
