"""Double arcs: angles of `f64` lanes by their tangents, sines and cosines.

A tangent leads to the nearest of eight angles and a polynomial in the way from there, a sine up to a half to a
polynomial, and one beyond it to half the other angle. Digits that have no room are carried along. They call no library,
and are right to within one unit of the last place.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.doubles import ROUNDER
from tilewright.backends.cpu.compute.error_functions import PLACES, looked_up
from tilewright.backends.cpu.compute.vectormath import INF
from tilewright.native.terms import Term
from tilewright.records import record

STEP = 0.140625
"""How far the tangents of the eight angles are apart, of which the first is zero."""
# those angles, as many digits as can be taken from pi without rounding, and the rest
ANGLES = (
    0.0, 0.13970887428916967, 0.2741674511196379, 0.3992207695752654, 0.5123894603107146, 0.6128202021652669,
    0.7008544078844352, 0.7775243103733374,
)  # fmt: skip
RESTS = (
    0.0, -6.025917895016206e-15, 2.0880454216528105e-14, -1.2856121104595646e-14, 2.3067176130730402e-14,
    -2.5566681628227188e-14, 1.4968134570096255e-14, 1.0409419940524526e-14,
)  # fmt: skip
PI, PI_REST = 3.1415926535897825, 1.0780605716316238e-14
# (atan(x) - x) / x^3, in x^2, up to half a step
ATAN = (
    -0.3333333333333333, 0.19999999999999227, -0.14285714283931714, 0.11111109609821448, -0.09090337227805079,
    0.07591763441373635,
)  # fmt: skip
# (asin(x) - x) / x^3, in x^2, up to a half
ASIN = (
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
    0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
    0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
)  # fmt: skip
STEEP = 2.0**64
"""Whose angle no double tells from a right one."""
LEAST = 2.0**-60
"""A root that is less is nothing beside what its lost digits are divided by."""


@record
class Arc:
    """An angle: a part that multiples of pi/2 lose without rounding, and the rest."""

    most: Term
    rest: Term

    def taken_from(self, turn: float) -> Arc:
        """Return what is left of so many half turns."""
        return Arc(self.most.like(turn * PI) - self.most, self.most.like(turn * PI_REST) - self.rest)

    def or_else(self, mask: Term, other: Arc) -> Arc:
        """Return another angle where a mask holds."""
        return Arc(mask.choose(other.most, self.most), mask.choose(other.rest, self.rest))

    @property
    def total(self) -> Term:
        """The angle, rounded."""
        return self.most + self.rest


def arctan(x: Term) -> Term:
    """Return the angle from -pi/2 to pi/2 that has this tangent."""
    size = x.magnitude().at_most(STEEP)
    is_steep = size > 1.0
    inverse = x.like(1.0) / size
    lost = inverse.fma(size * -1.0, 1.0) * inverse
    flat = _arc(is_steep.choose(inverse, size), is_steep.choose(lost, 0.0))
    return flat.or_else(is_steep, flat.taken_from(0.5)).total.signed_like(x)


def arctan2(y: Term, x: Term) -> Term:
    """Return the angle from -pi to pi of the point at x and y; signs of zeros tell the sides apart."""
    height, width = y.magnitude(), x.magnitude()
    is_steep = height > width
    long, short = is_steep.choose(height, width), is_steep.choose(width, height)
    is_plain = (short < long) & (long < INF)
    ratio = short / long
    lost = is_plain.choose(ratio.fma(long * -1.0, short) / long, 0.0)
    ratio = is_plain.choose(ratio, (short < long).choose(x.like(0.0), 1.0))
    flat = _arc(long.compare("oeq", "eq", 0.0).choose(x.like(0.0), ratio), lost)
    upright = flat.or_else(is_steep, flat.taken_from(0.5))
    turned = upright.or_else(x.bits() < 0, upright.taken_from(1.0))
    return (x.is_nan() | y.is_nan()).choose(x.like(float("nan")), turned.total.signed_like(y))


def _arc(tangent: Term, lost: Term) -> Arc:
    """Return the angle of a tangent from zero to one, and of the digits that it has no room for."""
    rounded = tangent.fma(1.0 / STEP, ROUNDER)
    near, place = (rounded - ROUNDER) * STEP, rounded.bits() & (PLACES - 1)
    high, below = tangent - near, near.fma(tangent, 1.0)
    inverse = tangent.like(1.0) / below
    way = high * inverse
    below_lost = near.fma(tangent, below.like(1.0) - below)
    way_lost = (way.fma(below * -1.0, high) + way.fma(below_lost * -1.0, lost)) * inverse
    square = way * way
    rest = (square * way).fma(square.horner(ATAN), looked_up("arc.rest", RESTS, place) + way_lost)
    return Arc(looked_up("arc.most", ANGLES, place), way + rest)


def arcsin(x: Term) -> Term:
    """Return the angle from -pi/2 to pi/2 that has this sine: NaN beyond one."""
    size = x.magnitude()
    is_steep, square, root, lost = _halved(size)
    y = is_steep.choose(root * 2.0, size)
    more = (square * y).fma(square.horner(ASIN), lost * 2.0)
    steep = _less(x.like(0.5 * PI), x.like(0.5 * PI_REST), y, more)
    return is_steep.choose(steep, y + more).signed_like(x)


def arccos(x: Term) -> Term:
    """Return the angle from zero to pi that has this cosine: NaN beyond one."""
    is_flat, square, root, lost = _halved(x.magnitude())
    is_left, twice = x < 0.0, x.like(-2.0) * x.like(1.0).signed_like(x)
    y = is_flat.choose(root * twice, x)
    more = (square * y).fma(square.horner(ASIN), lost * twice)
    angle = is_flat.choose(is_left.choose(x.like(PI), 0.0), 0.5 * PI)
    beside = is_flat.choose(is_left.choose(x.like(PI_REST), 0.0), 0.5 * PI_REST)
    return _less(angle, beside, y, more)


def _halved(size: Term) -> tuple[Term, Term, Term, Term]:
    """Return where a sine is more than a half, the square of it or of that of half the other angle, its root and rest.

    The other angle is the one that has it as its cosine.
    """
    is_steep = size > 0.5
    square = is_steep.choose((size * -0.5) + 0.5, size * size)
    root = is_steep.choose(square, 0.0).intrinsic("llvm.sqrt")
    lost = root.fma(root * -1.0, is_steep.choose(square, 0.0)) / (root.at_least(LEAST) * 2.0)
    return is_steep, square, root, lost


def _less(angle: Term, beside: Term, y: Term, more: Term) -> Term:
    """Return an angle, zero or more than what is taken from it, given with what is beside both."""
    left = angle - y
    return left + ((angle - left - y) + (beside - more))
