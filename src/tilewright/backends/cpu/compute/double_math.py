"""Double math: the common functions of `f64` lanes as LLVM IR that calls no library.

The library computes one element at a time. These are right to within one unit of the last place, `tanh` to within two;
NaN, infinities, signed zeros and denormals come out as in C. They need multiply-adds that round once: targets without
them call the library.
"""

from __future__ import annotations

import math

from tilewright.backends.cpu.compute.doubles import EXP, LN2_HIGH, LN2_LOW, MANTISSA, ONE, ROOT_HALF, ROUNDER
from tilewright.backends.cpu.compute.vectormath import outside_of_log
from tilewright.native.llvm import I32, mangled
from tilewright.native.terms import Term

SMALLEST = 2.0**-1022
LN2_REST = 2.3190468138462996e-17
"""What a double leaves of the logarithm of two."""
BASE_2 = (1.0, 0.0, 1.4426950408889634, 2.0355273740931033e-17)
"""The logarithm of two, the first few bits of it and the rest, and the factor to that of e as two doubles."""
BASE_10 = (0.30102999560767785, 5.630334806675098e-11, 0.4342944819032518, 1.098319650216765e-17)
# (log((1 + s) / (1 - s)) - 2s) / s, in s^2, for (1 + s) / (1 - s) between the roots of 1/2 and of 2
LOG = (
    0.6666666666666735130, 0.3999999999940941908, 0.2857142874366239149, 0.2222219843214978396,
    0.1818357216161805012, 0.1531383769920937332, 0.1479819860511658591,
)  # fmt: skip


def exp(x: Term) -> Term:
    """Return e to the power of each lane; results below the normal doubles round once, to denormals and zero."""
    rounded, r = reduced(x.at_most(710.0).at_least(-746.0))
    return scaled(((r * r).fma(r.horner(EXP), r) + 1.0), rounded)


def reduced(x: Term) -> tuple[Term, Term]:
    """Return an integer n, in the low bits of a double, and the smallest r with x = n ln(2) + r."""
    rounded = x.fma(math.log2(math.e), ROUNDER)
    n = rounded - ROUNDER
    return rounded, n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))


def scaled(x: Term, rounded: Term) -> Term:
    """Return x times 2^n, rounded once, for |n| up to 2000."""
    if x.b.module.scales:
        n = rounded.bits().to("trunc", I32)
        name = x.b.module.intrinsic(f"llvm.ldexp.{mangled(x.type)}.{mangled(n.type)}", x.type, x.type, n.type)
        return Term(x.b, x.b.call(x.type, name, x.value, n.value))
    n = rounded.bits() - rounded.like(ROUNDER).bits()
    half = n >> 1  # 2^n itself may be too large or too small for a double
    return x * power_of_two(half) * power_of_two(n - half)


def power_of_two(n: Term) -> Term:
    """Return 2^n for integers of normal results."""
    return ((n << 52) + ONE).to("bitcast", "double")


def exp2(x: Term) -> Term:
    """Return two to the power of each lane."""
    cut = x.at_most(1025.0).at_least(-1076.0)
    rounded = cut + ROUNDER
    part = cut - (rounded - ROUNDER)
    r = part * math.log(2)
    lost = part.fma(LN2_REST, part.fma(math.log(2), r * -1.0))
    return scaled((r * r).fma(r.horner(EXP), lost) + r + 1.0, rounded)


def log(x: Term) -> Term:
    """Return the natural logarithm: NaN below zero, minus infinity at either zero."""
    n, f = parts_of_log(x)
    half = f * f * 0.5
    rest = beside_half(f, half, n * LN2_LOW)
    return outside_of_log(x, n.fma(LN2_HIGH, f - (half - rest)))


def log2(x: Term) -> Term:
    """Return the logarithm to base two."""
    return _in_base(x, *BASE_2)


def log10(x: Term) -> Term:
    """Return the logarithm to base ten."""
    return _in_base(x, *BASE_10)


def _in_base(x: Term, unit: float, unit_rest: float, factor: float, factor_rest: float) -> Term:
    """Return a logarithm, that of two and the factor to that of e given as two doubles each."""
    n, f = parts_of_log(x)
    product, high, square = f * factor, n * unit, f * f
    total = high + product
    lost = (product - (total - high)) + f.fma(factor, product * -1.0)
    lost = f.fma(f, square * -1.0).fma(-0.5 * factor, f.fma(factor_rest, n.fma(unit_rest, lost)))
    half = square * 0.5
    return outside_of_log(x, total + (beside_half(f, half, f.like(0.0)) - half).fma(factor, lost))


def parts_of_log(x: Term) -> tuple[Term, Term]:
    """Return n and f of which x is 2^n (1 + f), where it is positive and finite."""
    denormal = x < SMALLEST
    shifted = denormal.choose(x * 2.0**52, x).bits() - ROOT_HALF
    n = (shifted >> 52).to("trunc", I32).to("sitofp", "double") - denormal.choose(x.like(52.0), 0.0)
    return n, ((shifted & MANTISSA) + ROOT_HALF).to("bitcast", "double") - 1.0


def beside_half(f: Term, half: Term, more: Term) -> Term:
    """Return what the logarithm of 1 + f is beside f and half its square, and something more."""
    s = f / (f + 2.0)
    square = s * s
    return s.fma(square.fma(square.horner(LOG), half), more)


def tanh(x: Term) -> Term:
    """Return the hyperbolic tangent: (1 - e) / (1 + e) with e = exp(-2|x|), both from the same exp(-2|x|) - 1."""
    rounded, r = reduced(x.magnitude().at_most(20.0) * -2.0)
    less = (r * r).fma(r.horner(EXP), r)
    scale = power_of_two(rounded.bits() - rounded.like(ROUNDER).bits())
    whole = scale - 1.0
    above = scale.fma(less, whole)
    below = above + 2.0
    lost_above, lost_below = scale.fma(less, whole - above), above - (below - 2.0)
    inverse = x.like(1.0) / below
    share = above * inverse * -1.0
    left = share.fma(lost_below, share.fma(below, above)) + lost_above.fma(share, lost_above)
    return (left * -1.0).fma(inverse, share).signed_like(x)
