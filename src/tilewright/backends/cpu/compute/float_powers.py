"""Powers of two, and logarithms to bases two and ten, of floats where multiply-adds round once.

A logarithm to another base is the natural one times a number that no float is. Both are taken as two floats, and what
the first of their product has no room for is added to what is small beside it.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.vectormath import (
    ROUNDER,
    below_two,
    log_and_more,
    log_of_more,
    outside_of_log,
    parts_of_log,
    scaled,
    scaled_by_floats,
)
from tilewright.native.llvm import lanes
from tilewright.native.terms import Term

EXP2 = (1.0, 0.6931472, 0.24022648, 0.055503596, 0.0096185, 0.001339097, 0.00015329264)  # 2^r for |r| <= 1/2
TINY = 2.0**-28
BASE_2 = (1.0, 0.0, 1.4426950216293335, 1.9259629911266175e-08)
"""The logarithm of two, and the factor to that of e: each as two floats, of the first few bits if it is multiplied."""
BASE_10 = (0.30102920532226562, 7.903462984745857e-07, 0.4342944920063019, -1.0103050118726031e-08)


def exp2(x: Term) -> Term:
    """Return two to the power of each lane."""
    if x.b.module.scales and lanes(x.type) == 16:
        n = (x + ROUNDER) - ROUNDER
        return scaled_by_floats(below_two(x - n).horner(EXP2), n)
    cut = x.at_most(130.0).at_least(-152.0)
    rounded = cut + ROUNDER
    n = rounded.bits() - rounded.like(ROUNDER).bits()
    return scaled((cut - (rounded - ROUNDER)).horner(EXP2), n)


def log2(x: Term) -> Term:
    """Return the logarithm to base two."""
    return _in_base(x, *BASE_2)


def log10(x: Term) -> Term:
    """Return the logarithm to base ten."""
    return _in_base(x, *BASE_10)


def log1p(x: Term) -> Term:
    """Return the natural logarithm of one more: of the sum, and of what is lost by adding, which is small beside it."""
    more = x + 1.0
    lost = (x - (more - 1.0)) / more
    return (x.magnitude() < TINY).choose(x, log_and_more(more, lost))


def _in_base(x: Term, unit: float, unit_rest: float, factor: float, factor_rest: float) -> Term:
    n, f = parts_of_log(x)
    product, high = f * factor, n * unit
    total = high + product
    lost = (product - (total - high)) + f.fma(factor, product * -1.0)
    square_rest = f.fma(f, (f * f) * -1.0)
    small = log_of_more(f).fma(factor, square_rest.fma(-0.5 * factor, f.fma(factor_rest, lost)))
    return outside_of_log(x, total + (n.fma(unit_rest, small) if unit_rest else small))
