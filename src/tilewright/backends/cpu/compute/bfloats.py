"""Bfloats: functions that take fewer terms for bfloat16 numbers, in lanes of `f32`, than for floats.

Their results are rounded to eight bits, which they are close enough for: half a unit and a tenth of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.backends.cpu.compute.doubles import times_normal
from tilewright.backends.cpu.compute.float_normal import END
from tilewright.backends.cpu.compute.vectormath import LOG2_E, ROUNDER, scaled_by_floats
from tilewright.native.llvm import Builder, Value, lanes
from tilewright.native.terms import Term

# how likely a normally distributed number lies beyond t, times exp(t^2 / 2), over u, in u = 1 / (1 + SLOPE t)
SLOPE, FALLING = 0.375, (0.14906117, 0.15773266, 0.08356821, 0.20027629, -0.09064037)
EXP2 = (0.99999926, 0.6931218, 0.24024746, 0.055917988, 0.009570144)  # 2^r for |r| <= 1/2


def _times_normal(b: Builder, given: Value) -> Value:
    """Return x times how likely a normally distributed number is to be at most x; floats have room for squares."""
    if not (b.module.scales and lanes(given.type) == 16):
        return times_normal(b, given)
    x = Term(b, given)
    size = x.magnitude().at_most(END)
    inverse = _about_inverse(size.fma(SLOPE, 1.0))
    beside, square = inverse * inverse.horner(FALLING), size * size
    n = square.fma(-0.5 * LOG2_E, ROUNDER) - ROUNDER
    e = scaled_by_floats(square.fma(-0.5 * LOG2_E, n * -1.0).horner(EXP2), n)
    return (x < 0.0).choose(x * beside * e, (size * beside * -1.0).fma(e, x)).value


def _about_inverse(x: Term) -> Term:
    """Return one over sixteen lanes, to fourteen bits."""
    name = x.b.module.intrinsic("llvm.x86.avx512.rcp14.ps.512", x.type, x.type, x.type, "i16")
    return Term(x.b, x.b.call(x.type, name, x.value, x.like(0.0).value, Value("i16", "-1")))


FUNCTIONS: Mapping[str, Callable[[Builder, Value], Value]] = {"times_normal": _times_normal}
"""By the names that the references of ops have for them."""
