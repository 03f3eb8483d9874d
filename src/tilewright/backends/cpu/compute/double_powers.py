"""Double powers: `f64` lanes to the power of others, by way of a logarithm as two doubles.

An exponent multiplies what its logarithm is off by up to a thousand times: that is the sum of a double and of the
digits that it has no room for. They call no library, and are right to within one unit of the last place.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.double_differences import power_of
from tilewright.backends.cpu.compute.double_math import parts_of_log, scaled
from tilewright.backends.cpu.compute.doubles import LN2_HIGH, LN2_LOW, signed_power
from tilewright.backends.cpu.compute.vectormath import INF
from tilewright.native.terms import Term

# (log((1 + s) / (1 - s)) - 2s) / s^3 is two thirds and s^2 times this, in s^2, up to the roots of 1/2 and of 2
LOG = (
    0.4, 0.2857142857142937, 0.22222222221652765, 0.18181818336099848, 0.1538459488700718, 0.1333480879881234,
    0.11706126464563398, 0.11724327060846747,
)  # fmt: skip
TWO_THIRDS, LESS = 0.6666666666666666, 3.700743415417188e-17
MOST, LEAST = 710.0, -746.0


def power(x: Term, y: Term) -> Term:
    """Return x to the power of y: of a negative x only for whole y, NaN otherwise.

    Anything to the power of zero is one, and so is one to the power of anything.
    """
    size = x.magnitude()
    log, lost = _log(size)
    exponent = y * log
    is_near = exponent.magnitude() < -2.0 * LEAST
    rest = is_near.choose(y.fma(lost, y.fma(log, exponent * -1.0)), 0.0)
    grown = power_of(exponent.at_most(MOST).at_least(LEAST), rest)
    result = scaled((grown.less + grown.lost) + 1.0, grown.rounded)
    is_one = y.compare("oeq", "eq", 0.0) | x.compare("oeq", "eq", 1.0)
    return is_one.choose(x.like(1.0), signed_power(x, y, size, result))


def _log(x: Term) -> tuple[Term, Term]:
    """Return the natural logarithm of what is not negative, as a double and the digits that it has no room for."""
    n, f = parts_of_log(x)
    below = f + 2.0
    below_lost = (f.like(2.0) - below) + f
    s = f / below
    s_lost = s.fma(below_lost * -1.0, s.fma(below * -1.0, f)) / below
    square = s * s
    square_lost = (s * 2.0).fma(s_lost, s.fma(s, square * -1.0))
    slope = square.horner(LOG)
    factor = square.fma(slope, TWO_THIRDS)
    factor_lost = square.fma(slope, factor.like(TWO_THIRDS) - factor) + LESS
    product = square * factor
    product_lost = square.fma(factor_lost, square_lost.fma(factor, square.fma(factor, product * -1.0)))
    cube = s * product
    cube_lost = s.fma(product_lost, s_lost.fma(product, s.fma(product, cube * -1.0)))
    whole, twice = n * LN2_HIGH, s * 2.0
    most = whole + twice
    lost = (whole - most) + twice
    total = most + cube
    lost = (most - total) + cube + (lost + (n.fma(LN2_LOW, s_lost.fma(2.0, cube_lost))))
    high = total + lost
    return _outside(x, high), (total - high) + lost


def _outside(x: Term, result: Term) -> Term:
    finite = (x < INF).choose(result, x)
    return (x.magnitude() > 0.0).choose(finite, x - INF)
