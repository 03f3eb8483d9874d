"""Double differences: functions of `f64` lanes that are differences or sums of exponentials, digits of which cancel.

What an exponential is beside a power of two is kept as a double and the digits that it has no room for, so that one
rounding is left at the end. They call no library, and are right to within one unit of the last place.
"""

from __future__ import annotations

import math

from tilewright.backends.cpu.compute.double_math import power_of_two, scaled
from tilewright.backends.cpu.compute.doubles import EXP, LN2_HIGH, LN2_LOW, ROUNDER
from tilewright.native.terms import Term
from tilewright.records import record

TINY = 2.0**-54
"""Below which functions that go through zero are the identity."""
FAR = 60.0
"""So many doublings from which on an inverse is nothing beside a number."""
# (sinh(x) - x) / x^3, in x^2, up to one
SINH = (
    0.16666666666666666, 0.008333333333333299, 0.00019841269841324198, 2.7557319191381816e-06, 2.5052117695907823e-08,
    1.6057679623801638e-10, 7.746178593018827e-13,
)  # fmt: skip


@record
class Power:
    """A power of e: what it is beside 2^n, less one and with the digits lost; n is in the low bits of a double."""

    less: Term
    lost: Term
    rounded: Term

    @property
    def doublings(self) -> Term:
        """The number n, as an integer."""
        return self.rounded.bits() - self.rounded.like(ROUNDER).bits()


def power_of(x: Term, rest: Term | float = 0.0) -> Power:
    """Return e to the power of a double and of the digits that it has no room for."""
    rounded = x.fma(math.log2(math.e), ROUNDER)
    n = rounded - ROUNDER
    above = n.fma(-LN2_HIGH, x)
    r = n.fma(-LN2_LOW, above)
    left = n.fma(-LN2_LOW, above - r)
    left = left + rest if isinstance(rest, Term) else left
    square = r * r
    half, cube, share = square * 0.5, square * r, r.horner(EXP[1:])
    most = r + half
    beside = r.fma(r, square * -1.0).fma(0.5, left.fma(cube.fma(share, most), left))
    more = cube.fma(share, beside)
    less = most + more
    return Power(less, (most - less) + more + ((r - most) + half), rounded)


def expm1(x: Term) -> Term:
    """Return e to the power of each lane, less one."""
    power = power_of(x.at_most(710.0).at_least(-40.0))
    half = power_of_two(power.doublings - 1)  # 2^n itself may be too large for a double
    whole = half - 0.5
    total = half.fma(power.less, whole)
    lost = half.fma(power.lost, half.fma(power.less, whole - total)) + (half - whole - 0.5)
    return (x.magnitude() < TINY).choose(x, (total + lost) * 2.0)


def sinh(x: Term) -> Term:
    """Return the hyperbolic sine."""
    size = x.magnitude()
    square = size * size
    near = (square * size).fma(square.horner(SINH), size)
    return (size < 1.0).choose(near, _with_inverse(size, -1.0)).signed_like(x)


def cosh(x: Term) -> Term:
    """Return the hyperbolic cosine."""
    return _with_inverse(x.magnitude(), 1.0)


def _with_inverse(size: Term, sign: float) -> Term:
    """Return half of what a power of e and its inverse are together."""
    power = power_of(size.at_most(712.0))
    high = power.less + 1.0
    low = (high.like(1.0) - high + power.less) + power.lost
    inverse = high.like(1.0) / high
    rest = inverse.fma(low * -1.0, inverse.fma(high * -1.0, 1.0)) * inverse
    n = (power.rounded - ROUNDER).at_most(FAR)
    share = power_of_two(n.fma(-2.0, ROUNDER).bits() - n.like(ROUNDER).bits()) * sign
    other = share * inverse
    total = high + other
    left = (high - total) + other
    return scaled(total + (left + share.fma(rest, low)), power.rounded - 1.0)
