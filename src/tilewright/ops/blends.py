"""Blends: functions of three elements, or of one between bounds."""

import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Number, X
from tilewright.core.build import call
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Undefined, spec_of
from tilewright.core.region import Array, Region
from tilewright.core.types import ShapedType
from tilewright.dtypes import common
from tilewright.errors import OperandError
from tilewright.ops.declare import FLOATS, NUMBERS, UNIFIED, op
from tilewright.ops.elementwise import maximum, minimum
from tilewright.ops.families import apply, check_dtype, elementwise, elementwise_dtype, elementwise_type

__all__ = ["clamp", "fma", "lerp"]


def fused(a: float, b: float, c: float) -> float:
    """Return a * b + c rounded once; of fp32 with the last bit odd where it is inexact, so that it can be once more."""
    product = a * b
    total = product + c
    if not (math.isfinite(a) and math.isfinite(b)):
        return total
    if not math.isfinite(c):
        return c
    if not (_is_short(a) and _is_short(b) and _is_short(c)):
        return _exactly(a, b, c)
    if total == 0:
        return total
    part = total - product
    lost = (product - (total - part)) + (c - part)
    is_even = struct.pack("<d", total)[0] % 2 == 0
    return math.nextafter(total, math.copysign(math.inf, lost)) if lost and is_even else total


def _is_short(x: float) -> bool:
    """Return whether a number has so few digits that products of two such are exact: those of fp32."""
    return x == 0 or (abs(x) < 3e38 and struct.unpack("<f", struct.pack("<f", x))[0] == x)


def _exactly(a: float, b: float, c: float) -> float:
    from fractions import Fraction  # for rare numbers: it takes half a millisecond

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def between(start: float, end: float, weight: float) -> float:
    """Return the number that is so far between two, counted from the nearer one."""
    apart = end - start
    return start + weight * apart if abs(weight) < 0.5 else end - apart * (1 - weight)


@cache
def _by_element(function: Callable[[float, float, float], float]) -> Callable[..., Any]:
    """Return a function of floats for arrays; back ends know it by its name."""
    return np.frompyfunc(function, 3, 1)


def _multiplied(a: Array, b: Array, c: Array) -> Array:
    return _by_element(fused)(a, b, c).astype(np.float64) if a.dtype.kind == "f" else a * b + c


def _blended(start: Array, end: Array, weight: Array) -> Array:
    return _by_element(between)(start, end, weight).astype(np.float64)


def _bounded(x: Array, min: Array, max: Array) -> Array:
    return np.minimum(np.maximum(x, min), max)


def _clamp_type(x: Expr, min: Expr | None, max: Expr | None) -> ShapedType:
    if min is None and max is None:
        raise OperandError("clamp needs a bound", help="pl.clamp(x, min=0.0, max=1.0), or one of the two")
    values = {name: value for name, value in (("x", x), ("min", min), ("max", max)) if value is not None}
    dtype = elementwise_dtype(values, common)
    check_dtype(dtype, NUMBERS, list(values))
    return elementwise_type(values, dtype)


def _one_bound(x: Expr, min: Expr | None, max: Expr | None) -> Expr | None:
    """Return the op that a clamp with one bound is."""
    if min is not None and max is not None:
        return None
    spec = spec_of(minimum if min is None else maximum)
    assert spec is not None
    return call(spec, {"lhs": x, "rhs": max if min is None else min})


def _clamp(result: ShapedType, x: Any, min: Any, max: Any) -> Region:
    return apply(_bounded, result.dtype, result.dtype, [x, min, max])


@called("torch triton", numpy="clip")
@op(
    kinds=UNIFIED, infer=_clamp_type, evaluate=_clamp, fold=_one_bound, family="mapped", reference=_bounded,
    undefined=Undefined.SPREADS, forms=(("min", "max"), ("min",), ("max",)),
    example="out = pl.store(pl.clamp(a, 0.75, pl.row_max(b)), [0, 0], out)",
)  # fmt: skip
def clamp(x: X, min: X | Number | None = None, max: X | Number | None = None) -> X:
    """Return each element, or the bound that it is beyond; where the bounds cross, the upper one.

    NaN stays, and where a bound is NaN so is the element.
    """
    ...


@called("triton", torch="addcmul")
@elementwise(reference=_multiplied, ulp=1)
def fma(a: X, b: X | Number, c: X | Number) -> X:
    """Return a * b + c for each three elements: rounded once, but that shorter floats are rounded to fp32 before."""
    ...


@called("torch")
@elementwise(reference=_blended, accepts=FLOATS, ulp=1)
def lerp(start: X, end: X | Number, weight: X | Number) -> X:
    """Return the number that lies `weight` of the way from `start` to `end`, which need not be between them.

    It is start + weight * (end - start), and from halfway on end - (1 - weight) * (end - start).
    """
    ...
