"""Double logs: logarithms of `f64` lanes of what is one and a little, and the functions that are such.

What is next to one is kept with the digits that a sum with one loses. They call no library, and are right to within one
unit of the last place.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.double_differences import TINY
from tilewright.backends.cpu.compute.double_math import beside_half, parts_of_log
from tilewright.backends.cpu.compute.doubles import LN2_HIGH, LN2_LOW
from tilewright.backends.cpu.compute.vectormath import outside_of_log
from tilewright.native.terms import Term

ODD = 2.0**-27
"""Below which odd functions are."""
FAR = 2.0**28
"""From where on one is nothing beside a square."""


def log1p(x: Term) -> Term:
    """Return the natural logarithm of one more than each lane."""
    return (x.magnitude() < TINY).choose(x, _log_of_more(x, x.like(0.0)))


def arcsinh(x: Term) -> Term:
    """Return the inverse of the hyperbolic sine."""
    size = x.magnitude()
    square = size * size
    square_lost = size.fma(size, square * -1.0)
    whole, whole_lost = _one_and(square)
    root = whole.intrinsic("llvm.sqrt")
    root_lost = _left(root, root, whole, whole_lost + square_lost) / (root * 2.0)
    below = root + 1.0
    below_lost = (root - below) + 1.0 + root_lost
    more = square / below
    more_lost = _left(more, below, square, square_lost - more * below_lost) / below
    total = size + more
    result = _far_or_near(size, total, (size - total) + more + more_lost)
    return (size < ODD).choose(x, result.signed_like(x))


def arccosh(x: Term) -> Term:
    """Return the inverse of the hyperbolic cosine: NaN below one."""
    above = x - 1.0
    lost = (x - above) - 1.0
    beyond, part = above + 2.0, above + 2.0 - above
    beyond_lost = (above - (beyond - part)) + (x.like(2.0) - part)
    square = above * beyond
    square_lost = above.fma(beyond_lost, above.fma(beyond, square * -1.0)) + lost * (x * 2.0)
    root = square.intrinsic("llvm.sqrt")
    root_lost = _left(root, root, square, square_lost) / (root.at_least(TINY) * 2.0)
    total = above + root
    part = total - above
    result = _far_or_near(x, total, (above - (total - part)) + (root - part) + (root_lost + lost))
    return (x < 1.0).choose(x.like(float("nan")), result)


def arctanh(x: Term) -> Term:
    """Return the inverse of the hyperbolic tangent: NaN beyond one, infinite at it."""
    size = x.magnitude()
    left = size.like(1.0) - size
    lost = (size.like(1.0) - left) - size
    twice = size * 2.0
    share = twice / left
    rest = _left(share, left, twice, share * lost * -1.0) / left
    return (size < ODD).choose(x, (_log_of_more(share, rest) * 0.5).signed_like(x))


def _left(share: Term, factor: Term, whole: Term, lost: Term) -> Term:
    """Return what is left of a number and of the digits that it has no room for by so many times a factor."""
    return share.fma(factor * -1.0, whole) + lost


def _far_or_near(x: Term, more: Term, rest: Term) -> Term:
    """Return the logarithm of twice what is far from one, or else of one and something more."""
    is_far = x > FAR
    whole, lost = _one_and(more)
    doubled = is_far.choose(x.like(1.0), 0.0)
    return _log_of(is_far.choose(x, whole), is_far.choose(x.like(0.0), lost + rest), doubled)


def _log_of_more(x: Term, rest: Term) -> Term:
    """Return the logarithm of one and a double and the digits that it has no room for."""
    whole, lost = _one_and(x)
    return _log_of(whole, lost + rest, x.like(0.0))


def _one_and(x: Term) -> tuple[Term, Term]:
    """Return one more than doubles, and the digits lost."""
    whole = x + 1.0
    part = whole - 1.0
    return whole, (x - part) + (x.like(1.0) - (whole - part))


def _log_of(x: Term, rest: Term, doublings: Term) -> Term:
    """Return the logarithm of a double, of the digits that it has no room for, and of so many doublings."""
    n, f = parts_of_log(x)
    n = n + doublings
    half = f * f * 0.5
    more = beside_half(f, half, n.fma(LN2_LOW, rest / x))
    return outside_of_log(x, n.fma(LN2_HIGH, f - (half - more)))
