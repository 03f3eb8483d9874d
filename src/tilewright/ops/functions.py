"""Functions: those of mathematics and of neural networks, one element at a time.

A reference is also the recipe of native code, so the ones made of others are written to lose no digits: nothing is
subtracted from what is nearly equal to it.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from tilewright.arrays import np
from tilewright.core.annotations import Number, X
from tilewright.core.foreign_names import called
from tilewright.core.region import Array
from tilewright.ops.declare import FLOATS
from tilewright.ops.families import elementwise

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cosh", "erf", "erfc", "exp2", "expm1", "floor",
    "gelu", "gelu_tanh", "log10", "log1p", "log2", "pow", "round", "sigmoid", "sign", "silu", "sinh", "softplus",
    "square", "tan", "trunc",
]  # fmt: skip


@cache
def _ufunc(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return a function of floats for arrays; back ends know it by its name."""
    return np.frompyfunc(function, 1, 1)


def _by_element(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: _ufunc(function)(x).astype(np.float64)


def normal(x: float) -> float:
    """Return how likely a normally distributed number is to be at most x."""
    return math.erfc(x * -math.sqrt(0.5)) * 0.5


def fast_normal(x: float) -> float:
    """Return `normal` as networks approximate it, 0.5 + 0.5 tanh(...), without losing the digits of small values."""
    y = x * (1 + 0.044715 * x * x) * math.sqrt(8 / math.pi)
    e = math.exp(-abs(y))
    return (e if y < 0 else 1) / (1 + e)


def times_normal(x: float) -> float:
    """Return x times how likely a normally distributed number is to be at most x."""
    return x * normal(x)


def times_fast_normal(x: float) -> float:
    """Return `times_normal` as networks approximate it."""
    return x * fast_normal(x)


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (e + 1)


def _silu(x: Array) -> Array:
    """Return x * sigmoid(x), by the root of exp(-|x|), which keeps its digits where that has lost them."""
    root = np.exp(np.abs(x) * -0.5)
    return np.where(x < 0, x * root * root, x) / (root * root + 1)


def _sign(x: Array) -> Array:
    return np.where(x > 0, np.ones_like(x), np.where(x < 0, np.zeros_like(x) - np.ones_like(x), x * 0))


def _whole(function: Callable[[Array], Array], x: Array) -> Array:
    """Return floats made whole; integers are."""
    return function(x) if x.dtype.kind == "f" else x


@called("numpy torch triton")
@elementwise(reference=lambda x: np.exp2(x), accepts=FLOATS, float_result=True, ulp=1)
def exp2(x: X) -> X:
    """Return two to the power of each element; integers become fp32."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.expm1(x), accepts=FLOATS, float_result=True, ulp=1)
def expm1(x: X) -> X:
    """Return e to the power of each element, less one; integers become fp32."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: np.log2(x), accepts=FLOATS, float_result=True, ulp=1, domain=(1e-6, 1e6))
def log2(x: X) -> X:
    """Return the logarithm to base two of each element; integers become fp32."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.log10(x), accepts=FLOATS, float_result=True, ulp=1, domain=(1e-6, 1e6))
def log10(x: X) -> X:
    """Return the logarithm to base ten of each element; integers become fp32."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.log1p(x), accepts=FLOATS, float_result=True, ulp=1, domain=(-0.9, 1e6))
def log1p(x: X) -> X:
    """Return the natural logarithm of one more than each element; integers become fp32."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.sinh(x), accepts=FLOATS, float_result=True, ulp=1)
def sinh(x: X) -> X:
    """Return the hyperbolic sine of each element; integers become fp32."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.cosh(x), accepts=FLOATS, float_result=True, ulp=1)
def cosh(x: X) -> X:
    """Return the hyperbolic cosine of each element; integers become fp32."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.sin(x) / np.cos(x), accepts=FLOATS, float_result=True, ulp=6)
def tan(x: X) -> X:
    """Return the tangent of each element, an angle in radians."""
    ...


@called("torch", numpy="arcsin")
@elementwise(reference=lambda x: np.arcsin(x), accepts=FLOATS, float_result=True, ulp=1, domain=(-1.0, 1.0))
def asin(x: X) -> X:
    """Return the angle from -pi/2 to pi/2 whose sine is each element; integers become fp32."""
    ...


@called("torch", numpy="arccos")
@elementwise(reference=lambda x: np.arccos(x), accepts=FLOATS, float_result=True, ulp=1, domain=(-1.0, 1.0))
def acos(x: X) -> X:
    """Return the angle from zero to pi whose cosine is each element; integers become fp32."""
    ...


@called("torch", numpy="arctan")
@elementwise(reference=lambda x: np.arctan(x), accepts=FLOATS, float_result=True, ulp=1)
def atan(x: X) -> X:
    """Return the angle from -pi/2 to pi/2 whose tangent is each element; integers become fp32."""
    ...


@called("torch", numpy="arcsinh")
@elementwise(reference=lambda x: np.arcsinh(x), accepts=FLOATS, float_result=True, ulp=1)
def asinh(x: X) -> X:
    """Return the inverse hyperbolic sine of each element; integers become fp32."""
    ...


@called("torch", numpy="arccosh")
@elementwise(reference=lambda x: np.arccosh(x), accepts=FLOATS, float_result=True, ulp=1, domain=(1.0, 1e6))
def acosh(x: X) -> X:
    """Return the inverse hyperbolic cosine of each element; integers become fp32."""
    ...


@called("torch", numpy="arctanh")
@elementwise(reference=lambda x: np.arctanh(x), accepts=FLOATS, float_result=True, ulp=1, domain=(-1.0, 1.0))
def atanh(x: X) -> X:
    """Return the inverse hyperbolic tangent of each element; integers become fp32."""
    ...


@called("torch triton", numba="math.erf")
@elementwise(reference=_by_element(math.erf), accepts=FLOATS, float_result=True, ulp=2)
def erf(x: X) -> X:
    """Return the error function of each element; integers become fp32."""
    ...


@called("torch", numba="math.erfc")
@elementwise(reference=_by_element(math.erfc), accepts=FLOATS, float_result=True, ulp=1)
def erfc(x: X) -> X:
    """Return one less the error function of each element; integers become fp32."""
    ...


@called("torch triton")
@elementwise(reference=lambda x: _sigmoid(x), accepts=FLOATS, float_result=True, ulp=3)
def sigmoid(x: X) -> X:
    """Return 1 / (1 + exp(-x)) for each element; integers become fp32."""
    ...


@called(torch="nn.functional.silu swish")
@elementwise(reference=lambda x: _silu(x), accepts=FLOATS, float_result=True, ulp=6)
def silu(x: X) -> X:
    """Return each element times its sigmoid; integers become fp32."""
    ...


@called(torch="nn.functional.softplus")
@elementwise(
    reference=lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), accepts=FLOATS, float_result=True, ulp=3
)
def softplus(x: X) -> X:
    """Return log(1 + exp(x)) for each element; integers become fp32."""
    ...


@called(torch="nn.functional.gelu")
@elementwise(reference=_by_element(times_normal), accepts=FLOATS, float_result=True, ulp=4)
def gelu(x: X) -> X:
    """Return each element times the normal distribution up to it; integers become fp32.

    Doubles below zero are within 3 ulp for each unit of the exponent that is taken of them, `x * x / 2`.
    """
    ...


@elementwise(reference=_by_element(times_fast_normal), accepts=FLOATS, float_result=True, ulp=6)
def gelu_tanh(x: X) -> X:
    """Return `gelu` as networks approximate it, through a hyperbolic tangent; integers become fp32.

    Doubles below zero are within 3 ulp for each unit of the exponent that is taken of them.
    """
    ...


@called("numpy torch")
@elementwise(reference=lambda x: x * x)
def square(x: X) -> X:
    """Return each element times itself."""
    ...


@called("numpy torch")
@elementwise(reference=_sign)
def sign(x: X) -> X:
    """Return 1, 0 or -1 for each element, as it is above, at or below zero; NaN stays."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: _whole(np.floor, x))
def floor(x: X) -> X:
    """Return the largest integer not above each element, in its own type."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: _whole(np.ceil, x))
def ceil(x: X) -> X:
    """Return the smallest integer not below each element, in its own type."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: _whole(np.trunc, x))
def trunc(x: X) -> X:
    """Return each element without its fraction, in its own type."""
    ...


@called("numpy torch", numpy="rint")
@elementwise(reference=lambda x: _whole(np.rint, x))
def round(x: X) -> X:
    """Return the integer nearest to each element, of two the even one, in its own type."""
    ...


def _power(lhs: Any, rhs: Any) -> Any:
    """Return powers; where all exponents are one 0.5, NumPy alone would take roots, which differ at -inf and -0."""
    if not isinstance(lhs, np.ndarray):
        return np.power(lhs, rhs)
    base = cast("Array", lhs)
    return np.power(base, np.array(np.broadcast_to(rhs, np.broadcast_shapes(base.shape, np.asarray(rhs).shape))))


@called("torch", numpy="power float_power")
@elementwise(reference=lambda lhs, rhs: _power(lhs, rhs), accepts=FLOATS, float_result=True, ulp=1)
def pow(lhs: X | Number, rhs: X | Number) -> X:
    """Return each element to the power of another; integers become fp32.

    Of a negative element only whole powers are numbers; anything to the power of zero is one.
    """
    ...


@called("torch", numpy="arctan2")
@elementwise(reference=lambda lhs, rhs: np.arctan2(lhs, rhs), accepts=FLOATS, float_result=True, ulp=1)
def atan2(lhs: X | Number, rhs: X | Number) -> X:
    """Return the angle from -pi to pi of each point, whose height is the first and whose width the second operand."""
    ...
