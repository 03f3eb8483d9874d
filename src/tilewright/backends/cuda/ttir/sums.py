"""Sums: floats added up as exactly as promised, and sooner than in fp64.

Making doubles of floats takes as long as eight additions. Where memory leaves no time for that, the neighbours of a
single row are summed in pairs, and pairs of these, in fp32, and the rest in fp64. Where rows are shared out between
threads, they are summed in pairs of floats, the second with what rounding has taken from the first. Where a sum is not
finite then, its parts may have been too large for fp32, and all is summed in fp64 again; beside products there is no
time for that, and none for pairs where little depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.backends.cuda.ttir.elements import EXP, literal
from tilewright.backends.cuda.ttir.folds import flat, reduced, some
from tilewright.backends.cuda.ttir.text import F32, F64, I32, I64, Text, Value

PAIRED = 3
"""How often neighbours of a row are summed in pairs in fp32: three roundings are within what a sum promises."""
GROUP = 1 << PAIRED
FLUSHED = 2.0**-102
"""What terms that were taken for zero, and are below 2**-126, are too small to change, for each of them."""


def summed(t: Text, given: Value, axis: int, *, is_quick: bool, is_slow: bool) -> Value:
    """Return an axis of floats summed, and gone; where it must be quick, the sum of what fp32 holds.

    Where memory is slower than doubles are made, single rows are summed in fp64 alone, which is less to compile.
    """
    if is_quick:
        return _in_pairs(t, given, axis)
    count = given.shape[axis]
    if prod(given.shape) > count or count < 2 * GROUP:
        return _checked(t, given, axis, _in_pairs(t, given, axis))
    if is_slow and given not in t.quick:
        return _in_doubles(t, flat(t, given), 0)
    groups = t.shaped("tt.reshape", given, (count // GROUP, *(2,) * PAIRED))
    for last in range(PAIRED, 0, -1):
        groups = added(t, groups, last)
    return _checked(t, given, axis, _in_doubles(t, groups, 0))


def _checked(t: Text, given: Value, axis: int, found: Value) -> Value:
    """Return a sum that was found, or the one in fp64 where that is not finite.

    So is that of exponentials where those that were taken for zero could have changed it.
    """
    difference, result = t.simple("arith.subf", found, found), t.fresh(F32, found.shape)
    is_lost, powers = t.compare("cmpf uno", difference, difference), t.quick.get(given)
    if powers is not None:
        least = literal(t, FLUSHED * given.shape[axis], found)
        is_lost = t.simple("arith.ori", is_lost, t.compare("cmpf olt", found, least))
    with t.block(f"{result} = scf.if {some(t, is_lost)} -> ({result.type}) {{"):
        again = given if powers is None else t.machine(EXP, powers)
        again = _in_doubles(t, again, axis) if found.shape else _in_doubles(t, flat(t, again), 0)
        t.do(f"scf.yield {again} : {again.type}")
        t.between("} else {")
        t.do(f"scf.yield {found} : {found.type}")
    return result


def _in_doubles(t: Text, given: Value, axis: int) -> Value:
    total = added(t, t.convert("arith.extf", given, F64), axis)
    return t.convert("arith.truncf", total, F32)


def _in_pairs(t: Text, given: Value, axis: int) -> Value:
    """Return an axis of floats summed as pairs.

    Triton shares rows out between warps where one value is folded, so that a pair is one of 64 bits.
    """

    def both(a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        (high, low), (other, rest) = _unpacked(t, a[0]), _unpacked(t, b[0])
        total = t.simple("arith.addf", high, other)
        lost = t.simple("arith.subf", other, t.simple("arith.subf", total, high))
        kept = t.simple("arith.subf", low, t.simple("arith.subf", literal(t, 0, rest), rest))  # free where it is 0
        return [_packed(t, total, t.simple("arith.addf", kept, lost))]

    bits = t.convert("arith.extui", t.bits(given, I32), I64)
    high, low = _unpacked(t, reduced(t, [bits], axis, both)[0])
    is_finite = t.compare("cmpf oeq", t.simple("arith.subf", high, high), literal(t, 0, high))
    return t.select(is_finite, t.simple("arith.addf", high, low), high)


def added(t: Text, given: Value, axis: int) -> Value:
    """Return an axis of floats summed as they come."""
    return reduced(t, [given], axis, lambda a, b: [t.simple("arith.addf", a[0], b[0])])[0]


def _packed(t: Text, high: Value, low: Value) -> Value:
    """Return two floats as one value."""
    below, above = (t.convert("arith.extui", t.bits(half, I32), I64) for half in (high, low))
    return t.simple("arith.ori", below, t.simple("arith.shli", above, t.integer(32, I64, above.shape)))


def _unpacked(t: Text, pair: Value) -> tuple[Value, Value]:
    """Return the two floats of a value."""
    above = t.simple("arith.shrui", pair, t.integer(32, I64, pair.shape))
    high, low = (t.bits(t.convert("arith.trunci", half, I32), F32) for half in (pair, above))
    return high, low
