"""Sums: rows of fp32 added up as exactly as promised, and sooner than in fp64.

Making doubles of floats takes as long as eight additions. So groups of a few neighbours are summed in fp32, and these
in fp64; where a group was too large for fp32, all of them are summed in fp64 again. Beside products there is no time to
ask, and rows are summed in pairs of floats, the second with what rounding has taken from the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir.elements import literal
from tilewright.backends.cuda.ttir.folds import reduced, some
from tilewright.backends.cuda.ttir.text import F32, F64, I32, I64, Text, Value

GROUP = 4
"""Neighbours of a row that are summed in fp32: three roundings are within what a sum promises."""


def in_doubles(t: Text, given: Value, axis: int) -> Value:
    """Return an axis of floats summed in fp64, and rounded once."""
    total = _added(t, t.convert("arith.extf", given, F64), axis)
    return t.convert("arith.truncf", total, F32)


def in_groups(t: Text, given: Value, axis: int) -> Value:
    """Return the last axis of floats summed in groups, or in fp64 where a sum is not finite, as a group makes it."""
    shape = given.shape
    grouped = t.shaped("tt.reshape", given, (*shape[:axis], shape[axis] // GROUP, GROUP))
    quick = in_doubles(t, _added(t, grouped, axis + 1), axis)
    difference = t.simple("arith.subf", quick, quick)
    result = t.fresh(F32, quick.shape)
    is_lost = some(t, t.compare("cmpf uno", difference, difference))
    with t.block(f"{result} = scf.if {is_lost} -> ({result.type}) {{"):
        found = in_doubles(t, given, axis)
        t.do(f"scf.yield {found} : {found.type}")
        t.between("} else {")
        t.do(f"scf.yield {quick} : {quick.type}")
    return result


def in_pairs(t: Text, given: Value, axis: int) -> Value:
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


def _added(t: Text, given: Value, axis: int) -> Value:
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
