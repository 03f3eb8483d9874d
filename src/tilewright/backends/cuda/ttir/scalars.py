"""Scalars: arithmetic between single numbers of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.backends.cuda.ttir.convert import as_element, cast
from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import SCALARS
from tilewright.backends.cuda.ttir.values import Scalar, working
from tilewright.backends.scalar_arithmetic import ARITHMETIC, COMPARISONS, DIVISIONS, SHIFTS, float_division
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP32, DataType
from tilewright.ops.convert import round_mode
from tilewright.ops.masks import compared_in

Write = Callable[..., Scalar]


def in_type(k: Kernel, scalar: Scalar, dtype: DataType) -> Elements:
    """Return a number in another type; floats are fp32 or fp64 while they are computed with."""
    target = working(dtype)
    return Elements(k.t, as_element(k.t, scalar.value, working(scalar.dtype), target), target)


def rounded(k: Kernel, elements: Elements, dtype: DataType) -> Scalar:
    """Return a computed number as one of a type."""
    if working(dtype) == dtype:
        return Scalar(elements.value, dtype)
    narrow = as_element(k.t, elements.value, FP32, dtype)
    return Scalar(as_element(k.t, narrow, dtype, FP32), dtype)


def _arithmetic(ufunc: str) -> Write:
    def write(k: Kernel, call: Call, dtype: DataType, *operands: Scalar) -> Scalar:
        return rounded(k, UFUNCS[ufunc](*(in_type(k, o, dtype) for o in operands)), dtype)

    return write


def _comparison(ufunc: str) -> Write:
    def write(k: Kernel, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        types = compared_in(lhs.dtype, rhs.dtype)
        result = UFUNCS[ufunc](*(in_type(k, *pair) for pair in zip((lhs, rhs), types, strict=True)))
        return Scalar(result.value, BOOL)

    return write


def _shift(ufunc: str) -> Write:
    def write(k: Kernel, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        count = in_type(k, rhs, dtype) & (dtype.bits - 1)
        return Scalar(UFUNCS[ufunc](in_type(k, lhs, dtype), count).value, dtype)

    return write


def _division(kind: str) -> Write:
    def write(k: Kernel, call: Call, dtype: DataType, lhs: Scalar, rhs: Scalar) -> Scalar:
        a, b = in_type(k, lhs, dtype), in_type(k, rhs, dtype)
        if dtype.is_float():
            return rounded(k, float_division(kind, a, b), dtype)
        if not rhs.known:
            zero = b == 0
            k.fail(zero.value, "division by zero", call.span)
            b = b.function("where", (zero, 1, b))
        floor = UFUNCS["floor_divide"](a, b)
        if kind == "mod":
            return Scalar((a - floor * b).value, dtype)
        if kind == "div" and dtype.is_signed_int():
            floor = a.function("where", ((floor * b != a) & ((a ^ b) < 0), floor + 1, floor))
        return Scalar(floor.value, dtype)

    return write


def _not(k: Kernel, call: Call, dtype: DataType, value: Scalar) -> Scalar:
    return Scalar((Elements(k.t, value.value, BOOL) ^ True).value, dtype)


def _cast(k: Kernel, call: Call, dtype: DataType, given: Scalar) -> Scalar:
    mode: Any = call.kwargs["mode"]
    value = cast(k.t, given.value, working(given.dtype), dtype, round_mode(mode))
    return Scalar(as_element(k.t, value, dtype, working(dtype)), dtype)


for _name, _ufunc in ARITHMETIC.items():
    SCALARS[_name] = _arithmetic(_ufunc)
for _name, _ufunc in COMPARISONS.items():
    SCALARS[_name] = _comparison(_ufunc)
for _name, _ufunc in SHIFTS.items():
    SCALARS[_name] = _shift(_ufunc)
for _name in DIVISIONS:
    SCALARS[_name] = _division(_name)
SCALARS.update({"not_": _not, "cast": _cast})
