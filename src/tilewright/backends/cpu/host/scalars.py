"""Scalars: arithmetic between single numbers."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cpu.compute.traced import Lanes, combine, converted, rounded
from tilewright.backends.cpu.emit.function import HANDLERS, FunctionEmitter
from tilewright.backends.cpu.emit.values import Scalar, static
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, INDEX, UINT64, DataType, meet
from tilewright.native.llvm import I1, Value

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
        kind = meet(lhs.dtype, rhs.dtype)
        result = apply(in_type(e, lhs, kind or UINT64), in_type(e, rhs, kind or UINT64))
        return Scalar((result if kind else _with_sign(e, apply, lhs, rhs, result)).value, BOOL)

    return emit


def _with_sign(e: FunctionEmitter, apply: Callable[..., Lanes], lhs: Scalar, rhs: Scalar, result: Lanes) -> Lanes:
    """Return a comparison with a uint64, which is larger than every number below zero; `result` holds for others."""
    signed = in_type(e, lhs if lhs.dtype.is_signed_int() else rhs, INDEX)
    below = apply(*(signed.like(-1 if side.dtype.is_signed_int() else 0) for side in (lhs, rhs)))
    return _chosen(signed < 0, below, result)


def _shift(ufunc: str) -> Emit:
    apply: Callable[..., Lanes] = combine(ufunc)

    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        count = in_type(e, rhs, dtype) & (dtype.bits - 1)
        return Scalar(apply(in_type(e, lhs, dtype), count).value, dtype)

    return emit


def _chosen(condition: Lanes, then: Lanes, other: Lanes) -> Lanes:
    return Lanes(then.b, then.b.select(condition.value, then.value, other.value), then.element)


def _signed_zero(like: Lanes) -> Lanes:
    return Lanes(like.b, like.b.intrinsic("llvm.copysign", like.like(0).value, like.value), like.element)


def _float_division(kind: str, a: Lanes, b: Lanes) -> Lanes:
    """Return what NumPy's floor_divide and mod give: the quotient comes from the exact remainder."""
    rest = combine("fmod")(a, b)
    wrong = (rest != 0) & ((rest < 0) ^ (b < 0))
    if kind == "mod":
        return _chosen(rest == 0, _signed_zero(b), _chosen(wrong, rest + b, rest))
    quotient = (a - rest) / b
    quotient = _chosen(wrong, quotient - 1, quotient)
    floor = Lanes(a.b, a.b.intrinsic("llvm.floor", quotient.value), a.element)
    whole = _chosen(quotient - floor > 0.5, floor + 1, floor)
    return _chosen(b == 0, a / b, _chosen(quotient == 0, _signed_zero(a / b), whole))


def _division(kind: str) -> Emit:
    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        a, b = in_type(e, lhs, dtype), in_type(e, rhs, dtype)
        if dtype.is_float():
            result = a / b if kind == "div" else _float_division(kind, a, b)
            return Scalar(rounded(result, dtype).value, dtype)
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


for _name, _ufunc in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("min", "minimum"), ("max", "maximum"),
    ("neg", "negative"), ("bit_and", "bitwise_and"), ("bit_or", "bitwise_or"), ("bit_xor", "bitwise_xor"),
    ("invert", "invert"), ("and_", "bitwise_and"), ("or_", "bitwise_or"),
):  # fmt: skip
    HANDLERS.scalars[_name] = _arithmetic(_ufunc)
for _name, _ufunc in (
    ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"),
    ("ge", "greater_equal"),
):  # fmt: skip
    HANDLERS.scalars[_name] = _comparison(_ufunc)
for _name, _ufunc in (("shl", "left_shift"), ("shr", "right_shift")):
    HANDLERS.scalars[_name] = _shift(_ufunc)
for _name in ("div", "floordiv", "mod"):
    HANDLERS.scalars[_name] = _division(_name)
HANDLERS.scalars["not_"] = _not
