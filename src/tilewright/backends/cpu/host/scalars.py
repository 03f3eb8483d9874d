"""Scalars: arithmetic between single numbers."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cpu.compute.traced import Lanes, combine, converted, rounded
from tilewright.backends.cpu.emit.function import HANDLERS, FunctionEmitter
from tilewright.backends.cpu.emit.values import Scalar, static
from tilewright.backends.scalar_arithmetic import ARITHMETIC, COMPARISONS, DIVISIONS, SHIFTS, float_division
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, DataType
from tilewright.native.llvm import I1, Value
from tilewright.ops.masks import compared_in

Emit = Callable[..., Scalar]


def in_type(e: FunctionEmitter, scalar: Scalar, dtype: DataType) -> Lanes:
    """Return a scalar as one lane of another type."""
    return converted(Lanes(e.b, scalar.value, scalar.dtype), dtype)


def _arithmetic(ufunc: str) -> Emit:
    apply: Callable[..., Lanes] = combine(ufunc)

    def emit(e: FunctionEmitter, call: Call, dtype: DataType, *operands: Scalar) -> Scalar:
        result = apply(*(in_type(e, o, dtype) for o in operands))
        return Scalar(rounded(result, dtype).value, dtype)

    return emit


def _comparison(ufunc: str) -> Emit:
    apply: Callable[..., Lanes] = combine(ufunc)

    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        types = compared_in(lhs.dtype, rhs.dtype)
        return Scalar(apply(*(in_type(e, *pair) for pair in zip((lhs, rhs), types, strict=True))).value, BOOL)

    return emit


def _shift(ufunc: str) -> Emit:
    apply: Callable[..., Lanes] = combine(ufunc)

    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        count = in_type(e, rhs, dtype) & (dtype.bits - 1)
        return Scalar(apply(in_type(e, lhs, dtype), count).value, dtype)

    return emit


def _chosen(condition: Lanes, then: Lanes, other: Lanes) -> Lanes:
    return Lanes(then.b, then.b.select(condition.value, then.value, other.value), then.element)


def _division(kind: str) -> Emit:
    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        a, b = in_type(e, lhs, dtype), in_type(e, rhs, dtype)
        if dtype.is_float():
            return Scalar(rounded(float_division(kind, a, b), dtype).value, dtype)
        zero = b == 0
        if static(rhs.value) in (None, 0):
            e.fail(zero.value, "division by zero", call)
        return Scalar(_integer_division(kind, a, _chosen(zero, b.like(1), b)).value, dtype)

    return emit


def _integer_division(kind: str, a: Lanes, b: Lanes) -> Lanes:
    """Return a quotient rounded down or towards zero, or a remainder with the sign of the divisor."""
    floor = a // b
    if kind == "mod":
        return a - floor * b
    if kind == "div" and a.element.is_signed_int():
        return _chosen((floor * b != a) & ((a ^ b) < 0), floor + 1, floor)
    return floor


def _not(e: FunctionEmitter, call: Call, dtype: DataType, value: Scalar) -> Scalar:
    return Scalar(e.b.op("xor", value.value, Value(I1, "true")), dtype)


for _name, _ufunc in ARITHMETIC.items():
    HANDLERS.scalars[_name] = _arithmetic(_ufunc)
for _name, _ufunc in COMPARISONS.items():
    HANDLERS.scalars[_name] = _comparison(_ufunc)
for _name, _ufunc in SHIFTS.items():
    HANDLERS.scalars[_name] = _shift(_ufunc)
for _name in DIVISIONS:
    HANDLERS.scalars[_name] = _division(_name)
HANDLERS.scalars["not_"] = _not
