"""Elementwise ops: arithmetic and functions of one element at a time."""

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.annotations import Number, Tile, X
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Undefined
from tilewright.core.region import Array, Region
from tilewright.core.types import ShapedType
from tilewright.errors import ShapeMismatchError
from tilewright.ops.aliases import scalar_form
from tilewright.ops.declare import FLOATS, INTEGERS, TILE, op
from tilewright.ops.families import apply, check_dtype, computed, elementwise, shaped

__all__ = [
    "abs", "add", "addc", "adds", "addsc", "and_", "ands", "cos", "div", "divs", "exp", "floor_divide", "fmod",
    "fmods", "log", "lrelu", "maximum", "maximums", "minimum", "minimums", "mul", "muls", "neg", "not_", "or_", "ors",
    "prelu", "recip", "relu", "rem", "rems", "rsqrt", "shl", "shls", "shr", "shrs", "sin", "sqrt", "sub", "subc",
    "subs", "subsc", "tanh", "xor", "xors",
]  # fmt: skip

BITS = INTEGERS | {dt.BOOL}


def _quotient(lhs: Array, rhs: Array) -> Array:
    """Return lhs / rhs; integers drop the fraction, and a zero divisor gives zero."""
    if lhs.dtype.kind not in "iu":
        return lhs / rhs
    safe = np.where(rhs == 0, np.ones_like(rhs), rhs)
    floor = lhs // safe
    lost = (lhs != floor * safe) & ((lhs < 0) != (safe < 0))
    return np.where(rhs == 0, np.zeros_like(floor), floor + lost)


def _floored(lhs: Array, rhs: Array) -> Array:
    """Return lhs / rhs rounded down; of integers divided by zero, zero."""
    if lhs.dtype.kind not in "iu":
        return np.floor_divide(lhs, rhs)
    by_zero = rhs == 0
    return np.where(by_zero, np.zeros_like(lhs), lhs // np.where(by_zero, np.ones_like(rhs), rhs))


def _shift(lhs: Array, rhs: Array, left: bool) -> Array:
    """Return lhs shifted by rhs, which counts modulo the width of an element."""
    count = rhs.astype(lhs.dtype) & np.asarray(lhs.dtype.itemsize * 8 - 1, lhs.dtype)
    return np.left_shift(lhs, count) if left else np.right_shift(lhs, count)


def _modulo(lhs: Array, rhs: Array) -> Array:
    """Return what is left of lhs, between zero and rhs; of integers divided by zero nothing is."""
    left = np.fmod(lhs, rhs)
    if lhs.dtype.kind in "iu":
        return np.where((left != 0) & ((left < 0) != (rhs < 0)), left + rhs, left)
    turned = np.where((left < 0) != (rhs < 0), left + rhs, left)
    return np.where(left == 0, np.copysign(np.zeros_like(left), rhs), turned)


def _leaky(tile: Array, slope: Array) -> Array:
    return np.where(tile > 0, tile, tile * slope)


def _prelu_type(tile: Expr, slope: Expr, tmp: Expr | None) -> ShapedType:
    x, other = shaped(tile), shaped(slope)
    check_dtype(x.dtype, (dt.FP16, dt.FP32), ["tile"])
    if len(x.shape) != 2:
        raise ShapeMismatchError(f"prelu takes 2-D tiles, got {x}", blame=["tile"])
    pairs = [*zip(x.valid, other.valid, strict=False)]
    differ = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
    if differ or (x.shape, x.dtype) != (other.shape, other.dtype):
        message = f"each element needs its own slope: tile and slope must be alike, got {x} and {other}"
        raise ShapeMismatchError(message, blame=["tile", "slope"], help="pl.lrelu takes one slope for all elements")
    return computed(x, x.shape, x.valid, x.dtype)


def _prelu(result: ShapedType, tile: Region, slope: Region, tmp: Region | None) -> Region:
    return apply(_leaky, result.dtype, result.dtype, [tile, slope])


@elementwise(reference=lambda lhs, rhs: lhs + rhs, promotes=True, takes_numbers=True)
def add(lhs: X | Number, rhs: X | Number) -> X:
    """Return the sum of each pair of elements."""
    ...


@elementwise(reference=lambda lhs, rhs: lhs - rhs, promotes=True, takes_numbers=True)
def sub(lhs: X | Number, rhs: X | Number) -> X:
    """Return the difference of each pair of elements."""
    ...


@elementwise(reference=lambda lhs, rhs: lhs * rhs, promotes=True, takes_numbers=True)
def mul(lhs: X | Number, rhs: X | Number) -> X:
    """Return the product of each pair of elements."""
    ...


@elementwise(reference=_quotient, promotes=True, takes_numbers=True, ulp=2, domain=(0.5, 8.0))
def div(lhs: X | Number, rhs: X | Number, high_precision: bool = False) -> X:
    """Return the quotient of each pair of elements; integers drop the fraction, and by zero they give zero.

    `lhs / rhs` of integers is a quotient of floats instead, and `lhs // rhs` one that is rounded down. A divisor that
    all the elements of a row share may be inverted once; with `high_precision` every quotient is exact.
    """
    ...


@called("numpy torch triton")
@elementwise(reference=lambda lhs, rhs: np.maximum(lhs, rhs))
def maximum(lhs: X | Number, rhs: X | Number) -> X:
    """Return the larger of each pair of elements; NaN wins."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda lhs, rhs: np.minimum(lhs, rhs))
def minimum(lhs: X | Number, rhs: X | Number) -> X:
    """Return the smaller of each pair of elements; NaN wins."""
    ...


@called("numpy torch")
@elementwise(reference=lambda lhs, rhs: np.fmod(lhs, rhs), promotes=True, domain=(0.5, 8.0))
def fmod(lhs: X | Number, rhs: X | Number) -> X:
    """Return the remainder of each pair of elements, with the sign of the dividend; by an integer zero it is zero."""
    ...


@called(numpy="remainder mod", torch="remainder")
@elementwise(reference=_modulo, promotes=True, domain=(0.5, 8.0))
def rem(lhs: X | Number, rhs: X | Number, tmp: Tile | None = None) -> X:
    """Return the remainder of each pair of elements, with the sign of the divisor; by an integer zero it is zero.

    Also written `lhs % rhs`.
    """
    ...


@called("numpy torch")
@elementwise(reference=_floored, ulp=1, domain=(0.5, 8.0))
def floor_divide(lhs: X | Number, rhs: X | Number) -> X:
    """Return the quotient of each pair of elements, rounded down; by an integer zero it is zero.

    Also written `lhs // rhs`.
    """
    ...


@elementwise(reference=lambda lhs, rhs: lhs + rhs, promotes=True, chained=True, kinds=TILE)
def addc(lhs: Tile, rhs: Tile | Number, rhs2: Tile) -> Tile:
    """Return the sum of each three elements, from left to right."""
    ...


@elementwise(reference=lambda lhs, rhs: lhs - rhs, promotes=True, chained=True, kinds=TILE)
def subc(lhs: Tile, rhs: Tile | Number, rhs2: Tile) -> Tile:
    """Return each element less two others, from left to right."""
    ...


@called(numpy="negative", torch="neg")
@elementwise(reference=lambda x: -x)
def neg(x: X) -> X:
    """Return each element negated."""
    ...


@called("numpy torch triton", numpy="absolute fabs")
@elementwise(reference=lambda x: np.abs(x))
def abs(x: X) -> X:
    """Return the magnitude of each element."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: np.exp(x), accepts=FLOATS, float_result=True, ulp=2)
def exp(x: X) -> X:
    """Return e to the power of each element; integers become fp32."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: np.log(x), accepts=FLOATS, float_result=True, ulp=2, domain=(1e-6, 1e6))
def log(x: X, high_precision: bool = False) -> X:
    """Return the natural logarithm of each element; integers become fp32."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: np.sqrt(x), accepts=FLOATS, float_result=True, domain=(0.0, 1e6))
def sqrt(x: X) -> X:
    """Return the square root of each element; integers become fp32."""
    ...


@called("torch triton")
@elementwise(reference=lambda x: 1 / np.sqrt(x), accepts=FLOATS, float_result=True, ulp=2, domain=(1e-6, 1e6))
def rsqrt(x: X, tmp: Tile | None = None, high_precision: bool = False) -> X:
    """Return one over the square root of each element; integers become fp32."""
    ...


@called(numpy="reciprocal", torch="reciprocal")
@elementwise(reference=lambda x: 1 / x, accepts=FLOATS, float_result=True, ulp=1, domain=(0.1, 1e6))
def recip(x: X, high_precision: bool = False) -> X:
    """Return one over each element; integers become fp32."""
    ...


@called("torch")
@elementwise(reference=lambda x: np.maximum(x, 0))
def relu(x: X) -> X:
    """Return each element, or zero where it is negative."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: np.sin(x), accepts=FLOATS, float_result=True, ulp=2)
def sin(x: X) -> X:
    """Return the sine of each element, an angle in radians."""
    ...


@called("numpy torch triton")
@elementwise(reference=lambda x: np.cos(x), accepts=FLOATS, float_result=True, ulp=2)
def cos(x: X) -> X:
    """Return the cosine of each element, an angle in radians."""
    ...


@called("numpy torch")
@elementwise(reference=lambda x: np.tanh(x), accepts=FLOATS, float_result=True, ulp=2)
def tanh(x: X) -> X:
    """Return the hyperbolic tangent of each element; integers become fp32."""
    ...


@called(torch="nn.functional.leaky_relu")
@elementwise(reference=lambda lhs, rhs: np.where(lhs < 0, lhs * rhs, lhs), accepts=FLOATS)
def lrelu(lhs: X, rhs: Number) -> X:
    """Return each element, scaled by `rhs` where it is negative."""
    ...


@called("torch")
@op(
    kinds=TILE, infer=_prelu_type, evaluate=_prelu, family="elementwise", reference=_leaky, accepts={dt.FP16, dt.FP32},
    undefined=Undefined.SPREADS,
)  # fmt: skip
def prelu(tile: Tile, slope: Tile, tmp: Tile | None = None) -> Tile:
    """Return each element, scaled by its own slope where it is not positive."""
    ...


@elementwise(reference=lambda lhs, rhs: lhs & rhs, accepts=BITS, promotes=True)
def and_(lhs: X | Number, rhs: X | Number) -> X:
    """Return the bits both integers of each pair have; of masks, where both are True."""
    ...


@elementwise(reference=lambda lhs, rhs: lhs | rhs, accepts=BITS, promotes=True)
def or_(lhs: X | Number, rhs: X | Number) -> X:
    """Return the bits either integer of each pair has; of masks, where one is True."""
    ...


@elementwise(reference=lambda lhs, rhs: lhs ^ rhs, accepts=BITS, promotes=True)
def xor(lhs: X | Number, rhs: X | Number, tmp: Tile | None = None) -> X:
    """Return the bits exactly one integer of each pair has; of masks, where they differ."""
    ...


@elementwise(reference=lambda x: ~x, accepts=BITS)
def not_(x: X) -> X:
    """Return each integer with every bit flipped; of a mask, where it is False."""
    ...


@elementwise(reference=lambda lhs, rhs: _shift(lhs, rhs, left=True), accepts=INTEGERS, promotes=True, domain=(0, 7))
def shl(lhs: X | Number, rhs: X | Number) -> X:
    """Return each integer shifted left; the count is taken modulo the width."""
    ...


@elementwise(reference=lambda lhs, rhs: _shift(lhs, rhs, left=False), accepts=INTEGERS, promotes=True, domain=(0, 7))
def shr(lhs: X | Number, rhs: X | Number) -> X:
    """Return each integer shifted right, keeping its sign; the count is taken modulo the width."""
    ...


adds = scalar_form(add)
subs = scalar_form(sub)
muls = scalar_form(mul)
divs = scalar_form(div)
maximums = scalar_form(maximum)
minimums = scalar_form(minimum)
fmods = scalar_form(fmod)
rems = scalar_form(rem)
addsc = scalar_form(addc, "addsc")
subsc = scalar_form(subc, "subsc")
ands = scalar_form(and_)
ors = scalar_form(or_)
xors = scalar_form(xor)
shls = scalar_form(shl)
shrs = scalar_form(shr)
