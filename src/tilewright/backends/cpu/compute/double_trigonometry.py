"""Double trigonometry: sine and cosine of `f64` lanes that are not huge, as LLVM IR that calls no library.

An angle is reduced to [-pi/4, pi/4] and a quadrant. Multiples of the first part of pi/2 are taken off without rounding,
since multiply-adds round once; what rounding loses of the second part, and the third, are carried along as a tail.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.doubles import ROUNDER
from tilewright.native.terms import Term
from tilewright.records import record

HUGE = 2.0**23
"""From where on multiples of pi/2 have too many digits."""
QUARTER, REST, LEAST = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33  # pi / 2
# (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4, in r^2, for |r| <= pi/4
SIN = (
    -0.16666666666666632, 0.008333333333322418, -0.00019841269829812394, 2.7557313693577036e-06,
    -2.5050758384966687e-08, 1.5896811828603712e-10,
)  # fmt: skip
COS = (
    0.0416666666666666, -0.0013888888888874131, 2.4801587289487016e-05, -2.755731435379063e-07,
    2.08757234793286e-09, -1.135965886291983e-11,
)  # fmt: skip


@record
class Angle:
    """What is left of an angle less its quarter turns: a double, the digits it has no room for, and those turns."""

    r: Term
    tail: Term
    quadrant: Term


def sin(x: Term) -> Term:
    """Return the sine of angles in radians below `HUGE`."""
    angle = reduced(x)
    return wave(angle, angle.quadrant)


def cos(x: Term) -> Term:
    """Return the cosine of angles in radians below `HUGE`."""
    angle = reduced(x)
    return wave(angle, angle.quadrant + 1)


def reduced(x: Term) -> Angle:
    """Return an angle within an eighth of a turn of zero."""
    rounded = x.fma(1.0 / QUARTER, ROUNDER)
    n = rounded - ROUNDER
    most, less = n.fma(-QUARTER, x), n * REST
    r = most - less
    lost = n.fma(-LEAST, n.fma(-REST, less))
    return Angle(r, (most - r - less) + lost, rounded.bits())


def wave(angle: Angle, quadrant: Term) -> Term:
    """Return the sine of an angle with so many quarter turns."""
    r, tail = angle.r, angle.tail
    square = r * r
    half = square * 0.5
    most = half.like(1.0) - half
    sine = (r + (square * r).fma(square.horner(SIN), tail * most)).signed_like(r)  # of -0 the sum alone would be 0
    rest = (square * square).fma(square.horner(COS), (r * tail) * -1.0)
    cosine = most + ((half.like(1.0) - most - half) + rest)
    size = ((quadrant << 63) < 0).choose(cosine, sine)
    return (size.bits() ^ ((quadrant & 2) << 62)).to("bitcast", "double")
