"""Scalars: arithmetic between single numbers."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arrays import np
from tilewright.backends.cpu.emit import SCALARS, FunctionEmitter
from tilewright.backends.cpu.llvm import I1, Value
from tilewright.backends.cpu.traced import Lanes, converted, rounded
from tilewright.backends.cpu.values import Scalar, static
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP32, INDEX, UINT64, DataType

Emit = Callable[..., Scalar]


def in_type(e: FunctionEmitter, scalar: Scalar, dtype: DataType) -> Lanes:
    """Return a scalar as one lane of another type."""
    return converted(Lanes(e.b, scalar.value, scalar.dtype), dtype)


def _arithmetic(ufunc: str) -> Emit:
    def emit(e: FunctionEmitter, call: Call, dtype: DataType, *operands: Scalar) -> Scalar:
        result: Lanes = getattr(np, ufunc)(*(in_type(e, o, dtype) for o in operands))
        return Scalar(rounded(result, dtype).value, dtype)

    return emit


def _comparison(ufunc: str) -> Emit:
    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        kind = _meeting(lhs.dtype, rhs.dtype)
        result: Lanes = getattr(np, ufunc)(in_type(e, lhs, kind), in_type(e, rhs, kind))
        return Scalar(result.value, BOOL)

    return emit


def _meeting(lhs: DataType, rhs: DataType) -> DataType:
    """Return a type that holds both numbers of a comparison."""
    if lhs == rhs:
        return lhs
    if lhs.is_float() or rhs.is_float():
        return FP32
    return UINT64 if UINT64 in (lhs, rhs) else INDEX


def _shift(ufunc: str) -> Emit:
    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        count = in_type(e, rhs, dtype) & (dtype.bits - 1)
        result: Lanes = getattr(np, ufunc)(in_type(e, lhs, dtype), count)
        return Scalar(result.value, dtype)

    return emit


def _float_division(e: FunctionEmitter, kind: str, a: Lanes, b: Lanes) -> Lanes:
    """Return what NumPy's floor_divide and mod give: the quotient comes from the exact remainder."""
    rest: Lanes = np.fmod(a, b)
    wrong = (rest != 0) & ((rest < 0) ^ (b < 0))
    if kind == "mod":
        signed = Lanes(e.b, e.b.intrinsic("llvm.copysign", rest.like(0).value, b.value), rest.element)
        return np.where(rest == 0, signed, np.where(wrong, rest + b, rest))
    quotient: Lanes = (a - rest) / b
    quotient = np.where(wrong, quotient - 1, quotient)
    whole: Lanes = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    zero = Lanes(e.b, e.b.intrinsic("llvm.copysign", whole.like(0).value, (a / b).value), whole.element)
    return np.where(b == 0, a / b, np.where(quotient == 0, zero, whole))


def _division(kind: str) -> Emit:
    def emit(e: FunctionEmitter, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        a, b = in_type(e, lhs, dtype), in_type(e, rhs, dtype)
        if dtype.is_float():
            result = a / b if kind == "div" else _float_division(e, kind, a, b)
            return Scalar(rounded(result, dtype).value, dtype)
        zero = b == 0
        if static(rhs.value) in (None, 0):
            e.fail(zero.value, "division by zero", call)
        safe: Lanes = np.where(zero, b.like(1), b)
        floor = a // safe
        if kind == "mod":
            return Scalar((a - floor * safe).value, dtype)
        if kind == "div" and dtype.is_signed_int():
            inexact_below = (floor * safe != a) & ((a ^ safe) < 0)
            floor = np.where(inexact_below, floor + 1, floor)
        return Scalar(floor.value, dtype)

    return emit


def _not(e: FunctionEmitter, call: Call, dtype: DataType, value: Scalar) -> Scalar:
    return Scalar(e.b.op("xor", value.value, Value(I1, "true")), dtype)


for _name, _ufunc in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("min", "minimum"), ("max", "maximum"), ("neg", "negative"),
    ("bit_and", "bitwise_and"), ("bit_or", "bitwise_or"), ("bit_xor", "bitwise_xor"), ("invert", "invert"),
    ("and_", "bitwise_and"), ("or_", "bitwise_or"),
):  # fmt: skip
    SCALARS[_name] = _arithmetic(_ufunc)
for _name, _ufunc in (
    ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"),
):  # fmt: skip
    SCALARS[_name] = _comparison(_ufunc)
for _name, _ufunc in (("shl", "left_shift"), ("shr", "right_shift")):
    SCALARS[_name] = _shift(_ufunc)
for _name in ("div", "floordiv", "mod"):
    SCALARS[_name] = _division(_name)
SCALARS["not_"] = _not
