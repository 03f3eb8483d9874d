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


def log(x: Term) -> Term:
    """Return the natural logarithm: NaN below zero, minus infinity at either zero."""
    denormal = x < SMALLEST
    shifted = denormal.choose(x * 2.0**52, x).bits() - ROOT_HALF
    n = (shifted >> 52).to("trunc", I32).to("sitofp", "double") - denormal.choose(x.like(52.0), 0.0)
    f = ((shifted & MANTISSA) + ROOT_HALF).to("bitcast", "double") - 1.0
    s = f / (f + 2.0)
    square, half = s * s, f * f * 0.5
    rest = s.fma(square.fma(square.horner(LOG), half), n * LN2_LOW)
    return outside_of_log(x, n.fma(LN2_HIGH, f - (half - rest)))


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
