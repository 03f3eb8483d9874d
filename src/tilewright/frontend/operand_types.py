"""Operand types: what the operands of an operator are converted to before it is an op on tiles or tensors.

Operators go by value, as in NumPy and torch: int8 and uint8 meet in int16, fp16 and bfloat16 in fp32, masks beside
numbers are ones and zeros, and `/` of integers is a quotient of floats. The ops that they spell keep the rules of the
PTO family, so operands are converted first where those differ.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tilewright.core.build import call
from tilewright.core.expr import Const, Expr, constant
from tilewright.core.op import OPS
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.dtypes import BOOL, FP32, FP64, DataType, common, promote
from tilewright.frontend.walk.walker import Value
from tilewright.ops.families import no_common
from tilewright.ops.masks import own_type

_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_SHIFTS = (ast.LShift, ast.RShift)


def is_vector(value: Value) -> bool:
    """Return whether a value is a tile or a tensor of one axis."""
    return isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType)) and len(value.type.shape) == 1


def element_type(value: Value) -> DataType | None:
    """Return the element type of a tile or a tensor; None for a number."""
    return value.type.dtype if isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType)) else None


def met(
    operator: ast.operator, lhs: Value, rhs: Value, convert: Callable[[Expr, DataType], Value]
) -> tuple[Value, Value]:
    """Return the operands of an operator, one of them a tile or a tensor, in the type that they meet in by value."""
    types = [dtype for dtype in (element_type(lhs), element_type(rhs)) if dtype is not None]
    if isinstance(operator, ast.MatMult):
        return _factors(lhs, rhs, convert)
    dtype = _elements(operator, lhs, rhs)
    keeps = promote(types[0], types[-1]) == dtype

    def converted(value: Value) -> Value:
        if _counts(value) and dtype.is_float():
            return as_scalar(value, dtype)
        if keeps or not isinstance(value, Expr) or isinstance(value, Const):
            return value
        return convert(value, dtype) if element_type(value) or dtype == FP32 else value

    return converted(lhs), converted(rhs)


def _factors(lhs: Value, rhs: Value, convert: Callable[[Expr, DataType], Value]) -> tuple[Value, Value]:
    """Return the operands of a product of tensors, those that no type of the two holds in one that does."""
    if not isinstance(lhs, Expr) or not isinstance(rhs, Expr):
        return lhs, rhs
    if not isinstance(lhs.type, TensorType) or not isinstance(rhs.type, TensorType):
        return lhs, rhs
    left, right = lhs.type.dtype, rhs.type.dtype
    dtype = common(left, right) or no_common(left, right, ["lhs", "rhs"])
    return (lhs, rhs) if dtype in (left, right) else (convert(lhs, dtype), convert(rhs, dtype))


def compared(lhs: Value, rhs: Value, convert: Callable[[Expr, DataType], Value] | None) -> tuple[Value, Value]:
    """Return the sides of a comparison, one a tile or a tensor, a running number beside it of the same kind.

    Integers become floats beside one where `convert` says how.
    """
    left, right = element_type(lhs), element_type(rhs)
    if left and right:
        return lhs, rhs
    number, tile, dtype = (rhs, lhs, left) if left else (lhs, rhs, right)
    assert dtype is not None
    if _counts(number) and dtype.is_float():
        number = as_scalar(number, dtype)
    elif convert and _is_running(number) and number.type.dtype.is_float() and dtype.is_int() and dtype.bits <= 32:
        tile = convert(tile, FP32 if dtype.bits <= 16 and number.type.dtype != FP64 else FP64)
        number = as_scalar(number, tile.type.dtype)
    return (tile, number) if left else (number, tile)


def of_one_kind(lhs: Value, rhs: Value) -> tuple[Value, Value]:
    """Return two numbers, an integer beside a float as one, too."""
    for number, other in ((lhs, rhs), (rhs, lhs)):
        dtype = _float_type(other)
        if _counts(number) and dtype is not None:
            made = as_scalar(number, dtype)
            return (made, rhs) if number is lhs else (lhs, made)
    return lhs, rhs


def _float_type(value: Value) -> DataType | None:
    """Return the type of a number with a fraction; None for other values."""
    if isinstance(value, float):
        return FP32
    dtype = value.type.dtype if isinstance(value, Expr) and isinstance(value.type, ScalarType) else None
    return dtype if dtype is not None and dtype.is_float() else None


def is_integer(value: Value) -> bool:
    """Return whether a value is a whole number, known or not."""
    if isinstance(value, Expr):
        return isinstance(value.type, ScalarType) and value.type.dtype.is_int()
    return isinstance(value, int) and not isinstance(value, bool)


def as_scalar(value: Expr, dtype: DataType) -> Expr:
    """Return a running number in a type."""
    if value.type == ScalarType(dtype):
        return value
    return call(OPS["scalar.cast"].spec, {"x": value, "target_type": dtype, "mode": "none"}, value.span)


def _is_running(value: Value) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, ScalarType) and not isinstance(value, Const)


def _counts(value: Value) -> bool:
    """Return whether a value is an integer that only the running program knows."""
    return _is_running(value) and value.type.dtype.is_int()


def _elements(operator: ast.operator, lhs: Value, rhs: Value) -> DataType:
    """Return the type that operands meet in."""
    left, right = element_type(lhs), element_type(rhs)
    dtype = _joined(operator, left, right) if left and right else left or right
    assert dtype is not None
    if dtype == BOOL and not (left and right) and not isinstance(operator, _BITS):
        dtype = _beside(lhs if right else rhs)
    return FP32 if isinstance(operator, ast.Div) and not dtype.is_float() else dtype


def _joined(operator: ast.operator, left: DataType, right: DataType) -> DataType:
    dtype = common(left, right)
    if dtype is None and isinstance(operator, (ast.Div, *_SHIFTS)):
        return left  # a quotient of floats, or what is shifted
    return dtype or no_common(left, right, ["lhs", "rhs"])


def _beside(number: Value) -> DataType:
    """Return the type that a mask takes beside a number."""
    if isinstance(number, Expr):
        assert isinstance(number.type, ScalarType)
        return own_type(number)
    assert isinstance(number, (int, float))
    return own_type(constant(number))
