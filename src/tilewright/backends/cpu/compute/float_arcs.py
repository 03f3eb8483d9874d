"""Arcs of floats where multiply-adds round once: angles by their tangents, sines and cosines.

Each is a number, a power of it times a polynomial, and what the number has no room for: the digits that a quotient or a
root lost are told by what it was made of.
"""

from __future__ import annotations

import math

from tilewright.native.llvm import F32, Value, lanes, shuffled, vector
from tilewright.native.terms import Term

# (atan(x) - x) / x^3, in x^2, up to 1
ATAN = (
    -0.333333, 0.19998531, -0.14264052, 0.10951175, -0.08400475, 0.057906546, -0.031127002, 0.010887361, -0.0017875476,
)  # fmt: skip
ASIN = (0.16666752, 0.074953094, 0.04546915, 0.024184778, 0.042158306)  # (asin(x) - x) / x^3, in x^2, up to 1/2
I16 = "i16"
PI, PI_REST = 3.1415927410125732, -8.742278000372475e-08
STEEP = 2.0**30
"""Whose angle no float tells from a right one."""


def arctan(x: Term) -> Term:
    """Return the angle from -pi/2 to pi/2 that has this tangent."""
    size = x.magnitude().at_most(STEEP)
    is_steep = size > 1.0
    inverse = x.like(1.0) / size
    y = is_steep.choose(inverse, size)
    square = y * y
    share = square.horner(ATAN)
    less = square * share
    lost = inverse.fma(size * -1.0, 1.0) * inverse * square.fma(-0.5, 1.0)  # which is about 1 / (1 + square)
    lost = (y.fma(y, square * -1.0) * y).fma(share, lost)
    steep = _less(x.like(PI / 2), x.like(PI_REST / 2), inverse, less, lost)
    return is_steep.choose(steep, less.fma(y, y)).signed_like(x)


def arcsin(x: Term) -> Term:
    """Return the angle from -pi/2 to pi/2 that has this sine: NaN beyond one."""
    size = x.magnitude()
    is_steep, square, root, lost = _halved(size)
    y = is_steep.choose(root, size)
    more = square * square.horner(ASIN)
    steep = _less(x.like(PI / 2), x.like(PI_REST / 2), root * 2.0, more, lost * 2.0)
    return _within(size, is_steep.choose(steep, more.fma(y, y))).signed_like(x)


def arccos(x: Term) -> Term:
    """Return the angle from zero to pi that has this cosine: NaN beyond one."""
    size = x.magnitude()
    is_flat, square, root, lost = _halved(size)
    twice = x.like(-2.0).signed_like(x) * -1.0
    y = is_flat.choose(root * twice, x)
    more = square * square.horner(ASIN)
    whole = (x < 0.0).choose(x.like(PI), 0.0)
    angle = is_flat.choose(whole, PI / 2)
    beside = is_flat.choose((x < 0.0).choose(x.like(PI_REST), 0.0), PI_REST / 2)
    return _within(size, _less(angle, beside, y, more, is_flat.choose(lost * twice, 0.0)))


def _halved(size: Term) -> tuple[Term, Term, Term, Term]:
    """Return where a sine is more than a half, the square of it or of that of half the other angle, its root and rest.

    The other angle is the one that has it as its cosine.
    """
    is_steep = size > 0.5
    square = is_steep.choose((size * -0.5) + 0.5, size * size)
    root, inverse = _root(square)
    return is_steep, square, root, root.fma(root * -1.0, square) * (inverse * 0.5)


def _root(x: Term) -> tuple[Term, Term]:
    """Return the root of what is small, and about one over it."""
    if not x.b.module.scales:
        root = x.intrinsic("llvm.sqrt")
        return root, x.like(1.0) / root.at_least(2.0**-50)
    inverse = _about_one_over_root(x.at_least(2.0**-100))
    root = x * inverse
    return root.fma(root * -1.0, x).fma(inverse * 0.5, root), inverse


def _about_one_over_root(x: Term) -> Term:
    """Return what an instruction for sixteen floats gives, whatever number of them there is."""
    b, count, wide = x.b, lanes(x.type), vector(F32, 16)
    every = [*range(count), *[0] * (16 - count)]
    given = b.splat(x.value, 16) if count == 1 else shuffled(b, x.value, x.value, every)
    name = b.module.intrinsic("llvm.x86.avx512.rsqrt14.ps.512", wide, wide, wide, I16)
    made = b.call(wide, name, given, Term(b, given).like(0.0).value, Value(I16, "-1"))
    if count == 1:
        return Term(b, b.value(F32, f"extractelement {made}, i32 0"))
    return Term(b, shuffled(b, made, made, range(count)))


def _less(angle: Term, angle_rest: Term, high: Term, more: Term, lost: Term) -> Term:
    """Return what a float, it times another and what it lost leave of an angle that is no smaller, given as two."""
    left = angle - high
    beside = ((angle - left) - high) + angle_rest
    return left - more.fma(high, lost - beside)


def _within(size: Term, result: Term) -> Term:
    return (size > 1.0).choose(size.like(math.nan), result)
