"""Doubles: functions of `f32` lanes that lose digits in their own precision, computed in the next.

A logarithm near one, a difference of exponentials or a power of a large number costs more digits than a float has to
spare, and none that a double would miss: what comes back is the float nearest to the exact result, but for a few that
lie halfway. Below `TINY` the functions that go through zero are the identity. NaN, infinities and signed zeros come out
as in C.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce

from tilewright.backends.cpu.compute import float_arcs, float_powers
from tilewright.backends.cpu.compute.float_powers import TINY
from tilewright.backends.cpu.compute.vectormath import INF, Emitter, accuracy, exp_of_sum, outside_of_log
from tilewright.native.llvm import F64, I32, element
from tilewright.native.terms import Term

ROUNDER = 1.5 * 2**52  # adding it rounds to an integer, which the low bits then hold
ONE, MANTISSA, ROOT_HALF = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF, 0x3FE6A09E667F3BCD
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # 32 bits, so that a multiple of it is exact; the rest
CUBE = 0.044715
CUBE_HIGH, CUBE_LOW = 0.044714998453855515, 1.5461444347053543e-09  # the same as two floats
ROOT_HIGH, ROOT_LOW = 1.5957691669464111, -4.534068054340423e-08  # the root of 8 / pi

# (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2
EXP = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752, 0.00019841269874800493,
    2.4801587325533363e-05, 2.7557255425746435e-06, 2.7557273661348637e-07, 2.510520637395701e-08,
    2.0914679376583935e-09,
)  # fmt: skip
# (log((1 + s) / (1 - s)) - 2s) / s^3, in s^2, for (1 + s) / (1 - s) between the roots of 1/2 and of 2
LOG = (
    0.6666666666666666, 0.4000000000000088, 0.28571428570803614, 0.22222222391713917, 0.18181795640132906,
    0.15386239702814658, 0.13268773138656886, 0.13086626147840102,
)  # fmt: skip
# (atan(x) - x) / x^3, in x^2, up to the tangent of pi/8
ATAN = (
    -0.33333333333266196, 0.19999999949854794, -0.142857081103604, 0.11110819716745676, -0.09084101895346429,
    0.07604800046078292, -0.06027307460946675, 0.03295679541870136,
)  # fmt: skip
# exp(x^2) erfc(x) (1 + 2x), in (x - 2.5) / (x + 2.5), up to 10.3
ERFC = (
    1.2648381836684772, -0.12235676501502522, -0.09902445634741927, 0.15762999740718273, -0.10296865070361287,
    0.03275959282157684, 0.0009428633765937398, -0.004371988085987251, 0.0004596418023666806, 0.0005965377307908296,
    -5.169315130184844e-05, -6.14870643484695e-05,
)  # fmt: skip
LAST = -14.5  # below which x times the normal distribution up to x is less than half of the smallest float


FUNCTIONS: list[Emitter] = []
"""All of them, by the names that the references of ops have for them."""


def in_doubles(body: Callable[..., Term]) -> Emitter:
    """Declare a function of lanes by what it is of doubles."""

    def rounded(*operands: Term) -> Term:
        if element(operands[0].type) == F64:  # what has a function of its own for doubles comes from `library`
            return body(*operands)
        return body(*map(_widened, operands)).to("fptrunc", "float")

    rounded.__name__, rounded.__doc__ = body.__name__, body.__doc__
    FUNCTIONS.append(accuracy(ulp=0.55)(rounded))
    return FUNCTIONS[-1]


def in_floats(floats: Callable[..., Term]) -> Callable[[Callable[..., Term]], Emitter]:
    """Declare a function of lanes by what it is of floats, and of doubles where multiply-adds round twice."""

    def declare(body: Callable[..., Term]) -> Emitter:
        def chosen(*operands: Term) -> Term:
            if element(operands[0].type) == F64:
                return body(*operands)
            if operands[0].b.module.fused:
                return floats(*operands)
            return body(*map(_widened, operands)).to("fptrunc", "float")

        chosen.__name__, chosen.__doc__ = body.__name__, body.__doc__
        FUNCTIONS.append(accuracy(ulp=1, unfused=0.55)(chosen))
        return FUNCTIONS[-1]

    return declare


def _widened(operand: Term) -> Term:
    """Return floats as doubles; numbers of the code stay such."""
    wide = operand.to("fpext", "double")
    return wide if operand.number is None else wide.like(operand.number)


def natural_exp(x: Term) -> Term:
    """Return e to the power of doubles, for results that are normal ones."""
    rounded = x.fma(math.log2(math.e), ROUNDER)
    n = rounded - ROUNDER
    r = n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))
    power = (r * r).fma(r.horner(EXP), r) + 1.0
    return power * ((rounded.bits() << 52) + ONE).to("bitcast", "double")


def natural_log(x: Term) -> Term:
    """Return the natural logarithm of doubles that are no denormals, and of what is outside of it."""
    shifted = x.bits() - ROOT_HALF
    n = (shifted >> 52).to("trunc", I32).to("sitofp", "double")
    f = ((shifted & MANTISSA) + ROOT_HALF).to("bitcast", "double") - 1.0
    s = f / (f + 2.0)
    square = s * s
    small = (square * s).fma(square.horner(LOG), s * 2.0)
    return outside_of_log(x, n.fma(LN2_HIGH, n.fma(LN2_LOW, small)))


def arc(x: Term) -> Term:
    """Return the angle in [0, pi/2] whose tangent is x, which is not negative."""
    steep = x > 1.0
    y = steep.choose(x.like(1.0) / x, x)
    middle = y > math.tan(math.pi / 8)
    z = middle.choose((y - 1.0) / (y + 1.0), y)
    square = z * z
    angle = middle.choose(z.like(math.pi / 4), 0.0) + (square * z).fma(square.horner(ATAN), z)
    return steep.choose(x.like(math.pi / 2) - angle, angle)


def unless_tiny(x: Term, result: Term) -> Term:
    """Return a function that is the identity near zero, with the sign of its argument."""
    return (x.magnitude() < TINY).choose(x, result.signed_like(x))


@in_floats(float_powers.exp2)
def exp2(x: Term) -> Term:
    """Return two to the power of each lane."""
    return natural_exp(x.at_most(200.0).at_least(-200.0) * math.log(2))


@in_doubles
def expm1(x: Term) -> Term:
    """Return e to the power of each lane, less one."""
    return unless_tiny(x, natural_exp(x.at_most(100.0).at_least(-100.0)) - 1.0)


@in_floats(float_powers.log2)
def log2(x: Term) -> Term:
    """Return the logarithm to base two."""
    return natural_log(x) * math.log2(math.e)


@in_floats(float_powers.log10)
def log10(x: Term) -> Term:
    """Return the logarithm to base ten."""
    return natural_log(x) * math.log10(math.e)


@in_floats(float_powers.log1p)
def log1p(x: Term) -> Term:
    """Return the natural logarithm of one more than each lane."""
    result = natural_log(x + 1.0)
    return (x.magnitude() < TINY).choose(x, result)


def is_few_products(exponent: float, most: float) -> bool:
    """Return whether a power is a few products, of roots too, of which no exponent is larger than `most`."""
    return 0.0 < abs(exponent) <= most and (exponent * 2).is_integer()


def few_products(x: Term, exponent: float) -> Term:
    """Return x to the power of a small multiple of a half, by products: each costs half a unit of the last place."""
    whole, half = divmod(abs(exponent), 1.0)
    base = x.magnitude() if half else x
    parts = [base.intrinsic("llvm.sqrt")] if half else []
    while whole:
        parts += [base] if whole % 2 else []
        whole //= 2
        base = base * base if whole else base
    result = reduce(operator.mul, parts)
    result = x.like(1.0) / result if exponent < 0 else result
    if not half:
        return result
    root = (x < 0.0) & x.compare("one", "ne", -INF)
    return root.choose(x.like(float("nan")), result)


@in_doubles
def power(x: Term, y: Term) -> Term:
    """Return x to the power of y: of a negative x only for whole y, NaN otherwise.

    Anything to the power of zero is one, and so is one to the power of anything.
    """
    if y.number is not None and is_few_products(y.number, most=8.0):
        return few_products(x, y.number)
    size = x.magnitude()
    result = natural_exp((y * natural_log(size)).at_most(200.0).at_least(-200.0))
    return y.compare("oeq", "eq", 0.0).choose(x.like(1.0), signed_power(x, y, size, result))


def signed_power(x: Term, y: Term, size: Term, result: Term) -> Term:
    """Return the power of x that its magnitude has a result for: negative for odd y, NaN for what is no whole one."""
    unit = size.compare("oeq", "eq", 1.0)
    whole = y.compare("oeq", "eq", y.intrinsic("llvm.trunc"))
    half = y * 0.5
    odd = half.compare("une", "ne", half.intrinsic("llvm.trunc"))
    negative = x.bits() < 0
    signed = unit.choose(x.like(1.0), result)
    signed = (negative & whole & odd).choose(signed * -1.0, signed)
    root = (x < 0.0) & (x.compare("one", "ne", -INF)) & (whole ^ 1)
    return root.choose(x.like(float("nan")), signed)


@in_doubles
def sinh(x: Term) -> Term:
    """Return the hyperbolic sine."""
    grown = natural_exp(x.magnitude().at_most(100.0))
    return unless_tiny(x, (grown - x.like(1.0) / grown) * 0.5)


@in_doubles
def cosh(x: Term) -> Term:
    """Return the hyperbolic cosine."""
    grown = natural_exp(x.magnitude().at_most(100.0))
    return (grown + x.like(1.0) / grown) * 0.5


@in_doubles
def arcsinh(x: Term) -> Term:
    """Return the inverse of the hyperbolic sine."""
    size = x.magnitude()
    return unless_tiny(x, natural_log(size + (size * size + 1.0).intrinsic("llvm.sqrt")))


@in_doubles
def arccosh(x: Term) -> Term:
    """Return the inverse of the hyperbolic cosine: NaN below one."""
    result = natural_log(x + ((x - 1.0) * (x + 1.0)).intrinsic("llvm.sqrt"))
    return (x < 1.0).choose(x.like(float("nan")), result)


@in_doubles
def arctanh(x: Term) -> Term:
    """Return the inverse of the hyperbolic tangent: NaN beyond one, infinite at it."""
    size = x.magnitude()
    return unless_tiny(x, natural_log((size + 1.0) / (x.like(1.0) - size)) * 0.5)


@in_floats(float_arcs.arcsin)
def arcsin(x: Term) -> Term:
    """Return the angle from -pi/2 to pi/2 that has this sine: NaN beyond one."""
    size = x.magnitude()
    cosine = ((x.like(1.0) - size) * (size + 1.0)).intrinsic("llvm.sqrt")
    return arc(size / cosine).signed_like(x)


@in_floats(float_arcs.arccos)
def arccos(x: Term) -> Term:
    """Return the angle from zero to pi that has this cosine: NaN beyond one."""
    return arc(((x.like(1.0) - x) / (x + 1.0)).intrinsic("llvm.sqrt")) * 2.0


@in_floats(float_arcs.arctan)
def arctan(x: Term) -> Term:
    """Return the angle from -pi/2 to pi/2 that has this tangent."""
    return arc(x.magnitude()).signed_like(x)


@in_doubles
def arctan2(y: Term, x: Term) -> Term:
    """Return the angle from -pi to pi of the point at x and y; signs of zeros tell the sides apart."""
    height, width = y.magnitude(), x.magnitude()
    steep = height > width
    long, short = steep.choose(height, width), steep.choose(width, height)
    ratio = short.compare("oeq", "eq", long).choose(x.like(1.0), short / long)
    ratio = long.compare("oeq", "eq", 0.0).choose(x.like(0.0), ratio)
    angle = arc(ratio)
    upright = steep.choose(x.like(math.pi / 2) - angle, angle)
    turned = (x.bits() < 0).choose(x.like(math.pi) - upright, upright)
    return (x.is_nan() | y.is_nan()).choose(x.like(float("nan")), turned.signed_like(y))


@in_doubles
def erfc(x: Term) -> Term:
    """Return one less the error function, its small values as exactly as the others."""
    return tail(x)


@accuracy(ulp=4)
def times_normal(x: Term) -> Term:
    """Return x times how likely a normally distributed number is to be at most x."""
    if element(x.type) == F64:
        return _times_normal(x)
    if x.b.module.scales:
        from tilewright.backends.cpu.compute import float_normal  # few kernels have it

        return float_normal.times_normal(x)
    return _times_normal(x.to("fpext", "double")).to("fptrunc", "float")


FUNCTIONS.append(times_normal)


def _times_normal(x: Term) -> Term:
    share = tail(x * -math.sqrt(0.5)) * 0.5
    return x * (x < LAST).choose(x.like(0.0), share)  # of which `tail` says no more from there on


@accuracy(ulp=6)  # what a subnormal exponential is rounded by is multiplied by ten; elsewhere it is 3
def times_fast_normal(x: Term) -> Term:
    """Return `times_normal` as networks approximate it, by 0.5 + 0.5 tanh(...) from the exponential of two floats."""
    if element(x.type) == F64:
        return x * _fast_normal(x)
    if not x.b.module.fused:
        return x * _fast_normal(x.to("fpext", "double")).to("fptrunc", "float")
    high, low = _cubic(x.magnitude().at_most(20.0))
    e = exp_of_sum(high * -1.0, low * -1.0)
    return x * ((x < 0.0).choose(e, 1.0) / (e + 1.0))


FUNCTIONS.append(times_fast_normal)


def _fast_normal(x: Term) -> Term:
    y = x * (x * x).fma(CUBE, 1.0) * math.sqrt(8 / math.pi)
    e = natural_exp(y.magnitude().at_most(200.0) * -1.0)
    return (y < 0.0).choose(e, 1.0) / (e + 1.0)


def _cubic(x: Term) -> tuple[Term, Term]:
    """Return sqrt(8 / pi) (x + 0.044715 x^3) as two floats, the second of which is what the first has no room for."""
    square, line = x * x, x * ROOT_HIGH
    cube = square * CUBE_HIGH
    rest = x.fma(x, square * -1.0).fma(CUBE_HIGH, square.fma(CUBE_LOW, square.fma(CUBE_HIGH, cube * -1.0)))
    factor = cube + 1.0
    above = factor - 1.0
    rest = rest + (x.like(1.0) - (factor - above)) + (cube - above)
    high = line * factor
    low = x.fma(ROOT_LOW, x.fma(ROOT_HIGH, line * -1.0)).fma(factor, line.fma(rest, line.fma(factor, high * -1.0)))
    return high, low


@in_doubles
def between(start: Term, end: Term, weight: Term) -> Term:
    """Return the number that is so far between two, counted from the nearer one."""
    return part_way(start, end, weight)


def part_way(start: Term, end: Term, weight: Term) -> Term:
    """Return the double that is so far between two, counted from the nearer one."""
    apart = end - start
    return (weight.magnitude() < 0.5).choose(start + weight * apart, end - apart * (weight.like(1.0) - weight))


def tail(x: Term) -> Term:
    """Return the complement of the error function."""
    size = x.magnitude().at_most(10.3)
    scaled = ((size - 2.5) / (size + 2.5)).horner(ERFC) / (size * 2.0 + 1.0)
    beyond = natural_exp(size * size * -1.0) * scaled
    return (x < 0.0).choose(x.like(2.0) - beyond, beyond)
