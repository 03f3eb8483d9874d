"""Numbers times the normal distribution up to them, exact and as networks approximate it, within what `gelu` promises.

Below zero that is exp(-x*x/2) times a factor that falls slowly: a polynomial of (t - K) / (t + K) over t + K, t = |x|.
Exponents are sums of two floats, as what a square is rounded by would be multiplied by the square. Everything is 2**64
times as large until the end, and so never too small to be exact: what a distribution that is subnormal was rounded by
would be multiplied by x. For results of half precision less will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements, doubled
from tilewright.backends.cuda.ttir.text import F32, F64, I32
from tilewright.dtypes import FP32, round_scalar

MIDDLE = 2.5625
FACTOR = (
    0.709980845451355, -0.44444188475608826, 0.1447722315788269, 0.0033660416956990957, -0.016968106850981712,
    -0.00040140937198884785, 0.0026755640283226967, 0.00046215381007641554, -0.0003740804677363485,
    -0.0001484705862822011,
)  # fmt: skip
"""erfcx(t / sqrt(2)) / 2 * (t + MIDDLE) by powers of (t - MIDDLE) / (t + MIDDLE), to 8e-9.

What 2**-(HALVED * t * t) is more than exp(-t*t/2) is divided out."""
ROUGH_FACTOR = (0.7552806735038757, -0.6075390577316284, 0.3870779275894165, -0.1900223344564438, 0.05996210128068924)
"""erfcx(t / sqrt(2)) / 2 * (t + 4) by powers of (t - 4) / (t + 4), to 6e-5."""
POWER = (
    0.6931471824645996, 0.24022647738456726, 0.05550331994891167, 0.00961843878030777, 0.0013399007730185986,
    0.00015353260096162558,
)  # fmt: skip
"""(2**r - 1) / r by powers of r, for |r| up to 1/2, to 2e-9."""
FARTHEST, FASTEST = 14.7, 11.0
"""Where x times the distribution, and times its approximation, have fallen below every float."""
MAGIC = 12582912.0
"""What has a float's whole part in its last bits once it is added."""
HALVED = round_scalar(0.5 / math.log(2), FP32)
LARGE = 2.0**64
SLOPE = math.sqrt(8 / math.pi)


def times_normal(x: Elements) -> Elements:
    """Return x times how likely a normally distributed number is to be at most x."""
    if x.value.element == F64:
        return x * (doubled("__nv_erfc")(x * -math.sqrt(0.5)) * 0.5)
    size = _least(x.ufunc("absolute", (x,)), FARTHEST)
    if x.is_rough:
        tail = _power(_fused(size * size, -0.5 / math.log(2), 64)) * _rough_factor(size)
    else:
        square = size * size
        tail = _decayed(square, _fused(size, size, -square), HALVED, _factor(size))
    return _weighted(x, size, tail)


def times_fast_normal(x: Elements) -> Elements:
    """Return x times 1 / (1 + exp(-y)), y = x * (1 + 0.044715 * x * x) * sqrt(8 / pi)."""
    if x.value.element == F64:
        return x * _doubled_fast_normal(x)
    size = _least(x.ufunc("absolute", (x,)), FASTEST)
    if x.is_rough:
        y = size * _fused(size * size, SLOPE * 0.044715, SLOPE)
        large = _power(_fused(y, -1 / math.log(2), 64))
        share = _inverse(_fused(large, 1 / LARGE, 1))
    else:
        large = _decayed(*_steep(size), 1 / math.log(2), size.like(LARGE))
        share = _refined(_fused(large, 1 / LARGE, 1))
    return _weighted(x, size, large * share)


def _weighted(x: Elements, size: Elements, tail: Elements) -> Elements:
    """Return x times a distribution whose tail beyond |x| is known, times 2**64; minus infinity times zero is NaN."""
    end = x.function("where", (x < 0, x.like(0), 1))
    if x.is_rough:  # a subnormal distribution has digits enough for half floats
        return x * x.ufunc("absolute", (_fused(tail, -1 / LARGE, end),))
    return _fused(size * tail, -1 / LARGE, x * end)


def _doubled_fast_normal(x: Elements) -> Elements:
    y = x * (x * 0.044715 * x + 1) * SLOPE  # rounded as the reference is: the exponential multiplies what differs
    small = x.ufunc("exp", (-x.ufunc("absolute", (y,)),))
    return x.function("where", (y < 0, small, 1)) / (small + 1)


def _steep(x: Elements) -> tuple[Elements, Elements]:
    """Return x * (1 + 0.044715 * x * x) * sqrt(8 / pi) as a float and what it is rounded by."""
    (slope, slope_low), (cubic, cubic_low) = _parts(x, SLOPE), _parts(x, SLOPE * 0.044715)
    square = x * x
    lost = _fused(x, x, -square)
    risen = square * cubic
    risen_low = _fused(square, cubic, -risen) + _fused(lost, cubic, _fused(square, cubic_low, slope_low))
    total = risen + slope
    rest = total - risen
    total_low = ((risen - (total - rest)) + (slope - rest)) + risen_low
    result = x * total
    return result, _fused(x, total, -result) + x * total_low


def _parts(x: Elements, number: float) -> tuple[Elements, Elements]:
    """Return a number as a float and what is left of it."""
    return x.like(number), x.like(number - round_scalar(number, FP32))


def _decayed(y: Elements, low: Elements, slope: float, scale: Elements) -> Elements:
    """Return 2**-((y + low) * slope) * scale, for a scale that keeps it from being too small."""
    t, (by, by_low) = y.t, (round_scalar(slope, FP32), slope - round_scalar(slope, FP32))
    whole = _fused(y, -by, MAGIC)
    r = _fused(y, -by, MAGIC - whole)
    r = _fused(low, -by, _fused(y, -by_low, r) if by_low else r)
    result = _fused(scale * r, _polynomial(POWER, r), scale)
    shift = t.simple("arith.shli", t.bits(whole.value, I32), t.integer(23, I32, y.shape))
    return y.of(t.bits(t.simple("arith.addi", t.bits(result.value, I32), shift), F32))


def _factor(size: Elements) -> Elements:
    """Return what the tail of the distribution is of exp(-x*x/2), times 2**64."""
    share = _inverse(size + MIDDLE)
    error = _fused(-size, share, _fused(share, -MIDDLE, 1))  # of which the sum's rounding is no part
    share = _fused(share, error, share)
    return _polynomial([each * LARGE for each in FACTOR], _fused(share, -2 * MIDDLE, 1)) * share


def _rough_factor(size: Elements) -> Elements:
    share = _inverse(size + 4)
    return _polynomial(ROUGH_FACTOR, (size - 4) * share) * share


def _polynomial(factors: Sequence[float], x: Elements) -> Elements:
    result = x.like(factors[-1])
    for factor in factors[-2::-1]:
        result = _fused(result, x, factor)
    return result


def _refined(x: Elements) -> Elements:
    """Return 1 / x."""
    share = _inverse(x)
    return _fused(share, _fused(-x, share, 1), share)


def _inverse(x: Elements) -> Elements:
    return x.of(x.t.machine("rcp.approx.ftz.f32 $0, $1;", x.value))


def _power(x: Elements) -> Elements:
    return x.of(x.t.machine("ex2.approx.ftz.f32 $0, $1;", x.value))


def _least(x: Elements, most: float) -> Elements:
    return x.of(x.t.simple("arith.minnumf", x.value, x.like(most).value))


def _fused(a: Elements, b: Elements | float, c: Elements | float) -> Elements:
    return a.ufunc("fused", (a, b, c))


UFUNCS.update({"times_normal": times_normal, "times_fast_normal": times_fast_normal})
