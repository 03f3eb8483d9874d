"""Double tails: the complement of the error function of `f64` lanes.

It is the exponential of minus a square, times a polynomial, over a line: of each, the digits that a double has no room
for are carried along. It calls no library, and is right to within one unit of the last place.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.double_differences import Power, power_of
from tilewright.backends.cpu.compute.double_math import scaled
from tilewright.native.terms import Term

LAST = 27.5
"""From where on the complement is zero."""
MIDDLE = 4.0
# exp(x^2) erfc(x) (1 + 2x), in (x - 4) / (x + 4)
ERFC = (
    1.2329951186255526, -0.13962111684056286, 0.015379652102621056, 0.068097054254734, -0.10103906603637151,
    0.09373283499689343, -0.06633036581106219, 0.03716751556121283, -0.0161977340648559, 0.0050319697640336825,
    -0.0007577733009931686, -0.00019925553157891968, 0.00015062207221481347, -2.440316248975045e-05,
    -1.12243456510692e-05, 5.7180501106698735e-06, 3.006845760198746e-07, -8.356350520555463e-07,
    6.320363005092063e-08, 1.1591017157659705e-07, -7.78679409820906e-09, -1.3922845965947392e-08,
    -1.8982398693822325e-09,
)  # fmt: skip
ERFC_LOST = -4.625318921008717e-17  # what the first of them has no room for
SLOPE = (-0.13585, -0.00243, 0.12332, -0.13828, 0.75303, -0.85314)  # about how steep that is
# (erf(x) - 2 x / sqrt(pi)) / x^3, in x^2, up to a half
ERF = (
    -0.37612638903183754, 0.112837916709551, -0.02686617064510409, 0.005223977624325344, -0.0008548326793233783,
    0.0001205530629440674, -1.4923829613452872e-05, 1.6389446360450111e-06, -1.4787385599052157e-07,
)  # fmt: skip
FIRST, FIRST_LOST = 1.1283791670955126, 1.533545961316588e-17  # 2 / sqrt(pi)


def erfc(x: Term) -> Term:
    """Return one less the error function."""
    return _of_both_signs(x, _far(x.magnitude().at_most(LAST)))


def tail(x: Term) -> Term:
    """Return the same within five units of the last place."""
    size = x.magnitude().at_most(LAST)
    share = ((size - MIDDLE) / (size + MIDDLE)).horner(ERFC) / (size * 2.0 + 1.0)
    power = _power(size)
    return _of_both_signs(x, scaled((power.less + power.lost + 1.0) * share, power.rounded))


def _of_both_signs(x: Term, far: Term) -> Term:
    """Return the complement of any number by that of its magnitude, where that is not near zero."""
    beyond = (x < 0.0).choose(x.like(2.0) - far, far)
    return (x.magnitude() < 0.5).choose(_near(x), beyond)


def _near(x: Term) -> Term:
    """Return the complement up to a half: one less a line and a rest."""
    square, line = x * x, x * FIRST
    line_lost = x.fma(FIRST_LOST, x.fma(FIRST, line * -1.0))
    rest = (square * x).fma(square.horner(ERF), line_lost)
    left = x.like(1.0) - line
    return left + ((x.like(1.0) - left - line) - rest)


def _far(size: Term) -> Term:
    """Return the complement of what is not negative."""
    over, over_lost = _sum(size, -MIDDLE)
    under, under_lost = _sum(size, MIDDLE)
    way, way_lost = _quotient(over, over_lost, under, under_lost)
    factor = way.horner(ERFC[1:])
    share = way.fma(factor, ERFC[0])
    share_lost = way_lost.fma(way.horner(SLOPE), way.fma(factor, share.like(ERFC[0]) - share) + ERFC_LOST)
    power = _power(size)
    whole = power.less + 1.0
    whole_lost = (whole.like(1.0) - whole + power.less) + power.lost
    above = whole * share
    above_lost = whole.fma(share_lost, whole_lost.fma(share, whole.fma(share, above * -1.0)))
    most, rest = _quotient(above, above_lost, *_sum(size * 2.0, 1.0))
    return scaled(most + rest, power.rounded)


def _power(size: Term) -> Power:
    """Return e to the power of minus a square."""
    square = size * size
    return power_of(square * -1.0, size.fma(size * -1.0, square))


def _sum(x: Term, number: float) -> tuple[Term, Term]:
    """Return a sum, and what it has no room for."""
    total = x + number
    part = total - x
    return total, (x - (total - part)) + (x.like(number) - part)


def _quotient(above: Term, above_lost: Term, below: Term, below_lost: Term) -> tuple[Term, Term]:
    """Return a quotient of what is given as two doubles each, and what it has no room for."""
    inverse = below.like(1.0) / below
    most = above * inverse
    left = most.fma(below * -1.0, above) + most.fma(below_lost * -1.0, above_lost)
    return most, left * inverse
