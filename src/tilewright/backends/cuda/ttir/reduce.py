"""Reductions: rows and columns folded to one element each, what is not valid left out.

Sums and products of floats are folded in fp64 and rounded once: in which order threads fold is Triton's affair. Making
doubles of floats takes as long as eight additions, so that rows are summed otherwise: groups of a few neighbours in
fp32, and these in fp64; where a group may have been too large for fp32, all of them in fp64 again. Kernels that
multiply matrices have no time to ask, and sum their rows in pairs of floats, the second of which has what the first
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import FOLDS, Elements, computed, literal
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import F32, F64, I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call
from tilewright.dtypes import FP32

GROUP = 4
"""Neighbours of a row that are summed in fp32: three roundings are within what a sum promises."""

Combine: TypeAlias = "Callable[[Sequence[Value], Sequence[Value]], list[Value]]"
"""Writes how two elements of each value become one."""


@recipe("tile:reduction")
def _reduction(k: Kernel, call: Call, bound: Bound) -> Tile:
    spec, source, type_ = call.op.spec, bound["x"], tile_type(call)
    if type_.dtype in spec.stepwise:
        raise refused(f"`{call.op.name}` of {type_.dtype} elements", call.span)
    axis = len(type_.shape) - (1 if spec.name.startswith("row") else 2)
    given = computed(k.t, source.value, type_.dtype)
    mask = k.mask(source)
    if mask is not None:
        assert spec.start is not None
        given = given.of(k.t.select(mask, given.value, given.like(spec.start(type_.dtype)).value))
    if not type_.dtype.is_float() or spec.combine not in ("add", "multiply"):
        value = fold(k, given, axis, spec.combine)
    elif spec.combine == "add" and k.facts.factors:
        value = _in_pairs(k, given, axis)
    elif spec.combine == "add" and axis == len(type_.shape) - 1 and given.shape[axis] >= 2 * GROUP:
        value = _in_groups(k, given, axis)
    else:
        value = _in_doubles(k, given, axis, spec.combine)
    if type_.dtype.is_float():
        value = as_element(k.t, value, FP32, type_.dtype)
    valid = [1 if a == axis else extent for a, extent in enumerate(source.valid)]
    return k.tile(_kept(k, value, source.value.shape, axis), type_, valid)


def _in_doubles(k: Kernel, given: Elements, axis: int, combine: str) -> Value:
    wide = given.of(k.t.convert("arith.extf", given.value, F64))
    return k.t.convert("arith.truncf", fold(k, wide, axis, combine), F32)


def _in_groups(k: Kernel, given: Elements, axis: int) -> Value:
    """Return rows summed in groups, or in doubles where a sum is not finite: a group that is not makes it so."""
    t, shape = k.t, given.shape
    grouped = t.shaped("tt.reshape", given.value, (*shape[:axis], shape[axis] // GROUP, GROUP))
    quick = _in_doubles(k, given.of(fold(k, given.of(grouped), axis + 1, "add")), axis, "add")
    lost = t.compare("cmpf uno", t.simple("arith.subf", quick, quick), quick)
    for _ in lost.shape:
        lost = _any(k, lost)
    result = t.fresh(F32, quick.shape)
    with t.block(f"{result} = scf.if {lost} -> ({result.type}) {{"):
        found = _in_doubles(k, given, axis, "add")
        t.do(f"scf.yield {found} : {found.type}")
        t.between("} else {")
        t.do(f"scf.yield {quick} : {quick.type}")
    return result


def _any(k: Kernel, given: Value) -> Value:
    """Return whether a condition holds anywhere along the first axis, which is gone."""
    return _folded(k, [given], 0, lambda a, b: [k.t.simple("arith.ori", a[0], b[0])])[0]


def _in_pairs(k: Kernel, given: Elements, axis: int) -> Value:
    """Return rows summed as pairs of floats, the second with what rounding has taken from the first.

    Triton shares rows out between warps where one value is folded, so that a pair is one of 64 bits.
    """
    t = k.t

    def both(a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        (high, low), (other, rest) = _unpacked(k, a[0]), _unpacked(k, b[0])
        total = t.simple("arith.addf", high, other)
        lost = t.simple("arith.subf", other, t.simple("arith.subf", total, high))
        kept = t.simple("arith.subf", low, t.simple("arith.subf", literal(t, 0, rest), rest))  # free where it is 0
        return [_packed(k, total, t.simple("arith.addf", kept, lost))]

    high, low = _unpacked(k, _folded(k, [_packed(k, given.value)], axis, both)[0])
    finite = t.compare("cmpf oeq", t.simple("arith.subf", high, high), literal(t, 0, high))
    return t.select(finite, t.simple("arith.addf", high, low), high)


def _packed(k: Kernel, high: Value, low: Value | None = None) -> Value:
    """Return two floats as one value; without a second, that is zero."""
    t = k.t
    bits = t.convert("arith.extui", t.bits_as(high, I32), I64)
    if low is None:
        return bits
    upper = t.simple("arith.shli", t.convert("arith.extui", t.bits_as(low, I32), I64), t.integer(32, I64, low.shape))
    return t.simple("arith.ori", bits, upper)


def _unpacked(k: Kernel, pair: Value) -> tuple[Value, Value]:
    """Return the two floats of a value."""
    t = k.t
    upper = t.simple("arith.shrui", pair, t.integer(32, I64, pair.shape))
    high, low = (t.bits_as(t.convert("arith.trunci", half, I32), F32) for half in (pair, upper))
    return high, low


def fold(k: Kernel, given: Elements, axis: int, combine: str) -> Value:
    """Return an axis folded by a NumPy function of two elements, and gone."""

    def one(a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        return [FOLDS[combine](given.of(a[0]), given.of(b[0])).value]

    return _folded(k, [given.value], axis, one)[0]


def _folded(k: Kernel, given: Sequence[Value], axis: int, combine: Combine) -> list[Value]:
    """Return an axis of several values folded at once, and gone."""
    t, shape = k.t, given[0].shape
    left = (*shape[:axis], *shape[axis + 1 :])
    results, firsts, seconds = ([t.fresh(value.element, extent) for value in given] for extent in (left, (), ()))
    names, types = ", ".join(map(str, given)), ", ".join(value.type for value in given)
    made = ", ".join(value.type for value in results)
    head = f'{_listed(results)} = "tt.reduce"({names}) <{{axis = {axis} : i32}}> ({{'
    with t.block(head, f"}}) : ({types}) -> {made if len(results) == 1 else f'({made})'}"):
        t.between(f"^bb0({', '.join(f'{value}: {value.element}' for value in (*firsts, *seconds))}):")
        found = combine(firsts, seconds)
        t.do(f"tt.reduce.return {_listed(found)} : {', '.join(value.element for value in found)}")
    return results


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(str, values))


def _kept(k: Kernel, value: Value, shape: tuple[int, ...], axis: int) -> Value:
    """Return a folded axis as one of a single element."""
    whole = (*shape[:axis], 1, *shape[axis + 1 :])
    if not value.shape:
        return k.t.splat(value, whole)
    return k.t.shaped("tt.expand_dims", value, whole, f" {{axis = {axis} : i32}}")
