"""Reductions: rows and columns folded to one element each, what is not valid left out.

Sums and products of floats are folded in fp64 and rounded once: in which order threads fold is Triton's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import FOLDS, Elements, computed, literal
from tilewright.backends.cuda.ttir.facts import SEVERAL
from tilewright.backends.cuda.ttir.folds import reduced
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import picked, stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.sums import added, summed
from tilewright.backends.cuda.ttir.text import F32, I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import arithmetic, tile_type
from tilewright.backends.cuda.ttir.values import Tile, working
from tilewright.core.expr import Call
from tilewright.core.op import OpSpec
from tilewright.dtypes import FP32, FP64, DataType


@recipe("tile:reduction")
def _reduction(k: Kernel, call: Call, bound: Bound) -> Tile:
    spec, source, type_ = call.op.spec, bound["x"], tile_type(call)
    axis, dtype = axis_of(call, source), arithmetic(k, type_.dtype)
    valid = [1 if a == axis else extent for a, extent in enumerate(source.valid)]
    of_doubles = dtype == FP64 and spec.name == "col_sum"  # whose sum is that of one order
    if dtype in spec.stepwise or of_doubles:
        in_turn = _in_pairs if bound["tmp_tile"] is not None and not of_doubles else _in_order
        return k.tile(in_turn(k, source, axis, spec), type_, valid)
    value = _summed(k, call, source, axis, dtype) or _in_twos(k, source, axis, spec)
    if value is None:
        given = filled(k, exactly(k, spec, source.value, dtype), source, spec, dtype)
        value = fold(k, given, axis, spec.combine)
        if dtype.is_float() and spec.combine == "add":  # of zeros below zero, too, the sum is zero
            value = (given.of(value) + 0.0).value
        value = as_element(k.t, value, given.element, dtype)
    return k.tile(kept(k, value, source.value.shape, axis), type_, valid)


def _summed(k: Kernel, call: Call, source: Tile, axis: int, dtype: DataType) -> Value | None:
    """Return the sums of rows of floats, None for what is folded otherwise."""
    spec = call.op.spec
    if spec.combine != "add" or working(dtype) != FP32 or axis != len(source.type.shape) - 1:
        return None
    given = filled(k, computed(k.t, source.value, dtype), source, spec, dtype).value
    if call in k.facts.rough:
        return as_element(k.t, added(k.t, given, axis), FP32, dtype)
    is_slow = k.facts.floats > 0 and len(k.facts.sums) < SEVERAL
    total = summed(k.t, given, axis, is_quick=bool(k.facts.factors), is_slow=is_slow)
    return as_element(k.t, k.t.simple("arith.addf", total, literal(k.t, 0, total)), FP32, dtype)


def _in_twos(k: Kernel, source: Tile, axis: int, spec: OpSpec) -> Value | None:
    """Return the largest or least element of a row that was bfloat16, found two at a time; None for others."""
    t, given = k.t, k.t.widened.get(source.value)
    name = {"maximum": "max", "minimum": "min"}.get(spec.combine)
    if given is None or name is None or prod(given.shape) > given.shape[axis] or k.mask(source) is not None:
        return None
    twice = t.machine("mov.b32 $0, $2; mov.b32 $1, $2;", given, element=I32, registers="=r,=r,r", count=2)
    (pairs,) = reduced(t, [t.shaped("tt.reshape", twice, (given.shape[axis] // 2, 2))], 1, lambda a, _: a)
    step = f"{name}.NaN.bf16x2 $0, $1, $2;"
    (found,) = reduced(t, [pairs], 0, lambda a, b: [t.machine(step, a[0], b[0], registers="=r,r,r")])
    bits = t.simple("arith.shli", found, t.integer(16, I32)), found
    low, high = (t.bits(t.simple("arith.andi", each, t.integer(-1 << 16, I32)), F32) for each in bits)
    return t.simple(f"arith.{spec.combine}f", low, high)


def axis_of(call: Call, source: Tile) -> int:
    """Return the axis that an op of rows or of columns folds."""
    return len(source.type.shape) - (1 if call.op.spec.name.startswith("row") else 2)


def exactly(k: Kernel, spec: OpSpec, value: Value, dtype: DataType) -> Elements:
    """Return elements as they are folded: floats that are added or multiplied as fp64."""
    given = computed(k.t, value, dtype)
    if dtype.is_float() and spec.combine in ("add", "multiply"):
        return given.of(as_element(k.t, given.value, given.element, FP64), FP64)
    return given


def filled(k: Kernel, given: Elements, source: Tile, spec: OpSpec, dtype: DataType) -> Elements:
    """Return elements with what changes nothing wherever they are not valid."""
    mask = k.mask(source)
    if mask is None:
        return given
    assert spec.start is not None
    return given.of(k.t.select(mask, given.value, given.like(spec.start(dtype)).value))


def _in_order(k: Kernel, source: Tile, axis: int, spec: OpSpec) -> Value:
    """Return an axis folded from its first element on, rounded after every step."""
    t, shape = k.t, source.value.shape
    start = _started(k, source, axis, spec)
    one, turn = t.fresh(start.element, start.shape), t.fresh(I64)
    made = t.fresh(start.element, start.shape)
    low, high, by = (extents.held(t, end) for end in (0, source.valid[axis], 1))
    head = f"{made} = scf.for {turn} = {low} to {high} step {by} iter_args({one} = {start}) -> ({one.type}) : i64 {{"
    with t.block(head):
        row = picked(t, source.value, t.splat(turn, tuple(1 for _ in shape)), axis)
        found = _step(k, spec, one, row, source.type.dtype)
        t.do(f"scf.yield {found} : {found.type}")
    return made


def _in_pairs(k: Kernel, source: Tile, axis: int, spec: OpSpec) -> Value:
    """Return an axis folded in pairs of neighbours, then of those; an odd last one is folded into the first."""
    t, value, dtype = k.t, source.value, source.type.dtype
    count, zero, one, two = (extents.held(t, n) for n in (source.valid[axis], 0, 1, 2))
    start = _started(k, source, axis, spec)
    is_some = t.compare("cmpi sgt", count, zero)
    while value.shape[axis] > 1:
        half = (*value.shape[:axis], value.shape[axis] // 2, *value.shape[axis + 1 :])
        numbers = extents.positions(t, half, axis)
        firsts = t.simple("arith.muli", numbers, t.integer(2, I64, numbers.shape))
        seconds = t.simple("arith.addi", firsts, t.integer(1, I64, numbers.shape))
        pairs = _step(k, spec, picked(t, value, firsts, axis), picked(t, value, seconds, axis), dtype)
        last = picked(t, value, t.splat(t.simple("arith.subi", count, one), tuple(1 for _ in half)), axis)
        is_odd = t.compare("cmpi eq", t.simple("arith.andi", count, one), one)
        is_first = t.compare("cmpi eq", numbers, t.integer(0, I64, numbers.shape))
        left = t.simple("arith.andi", is_first, t.splat(is_odd, numbers.shape))
        more = _step(k, spec, pairs, extents.spread(t, last, half), dtype)
        pairs = t.select(extents.spread(t, left, half), more, pairs)
        is_done = t.compare("cmpi sle", count, one)
        value = t.select(t.splat(is_done, half), stretch(t, value, axis, 0, half[axis]), pairs)
        count = t.select(is_done, count, t.simple("arith.divsi", count, two))
    return t.select(t.splat(is_some, value.shape), value, start)


def _started(k: Kernel, source: Tile, axis: int, spec: OpSpec) -> Value:
    """Return what folding nothing along an axis gives."""
    shape = source.value.shape
    assert spec.start is not None
    like = Value("", F32, (*shape[:axis], 1, *shape[axis + 1 :]))
    return as_element(k.t, literal(k.t, spec.start(source.type.dtype), like), FP32, source.type.dtype)


def _step(k: Kernel, spec: OpSpec, a: Value, b: Value, dtype: DataType) -> Value:
    """Return two elements folded and rounded."""
    found = FOLDS[spec.combine](computed(k.t, a, dtype), computed(k.t, b, dtype))
    return as_element(k.t, found.value, found.element, dtype)


def fold(k: Kernel, given: Elements, axis: int, combine: str) -> Value:
    """Return an axis folded by a NumPy function of two elements, and gone."""

    def combined(a: Sequence[Value], b: Sequence[Value]) -> Sequence[Value]:
        return [FOLDS[combine](given.of(a[0]), given.of(b[0])).value]

    return reduced(k.t, [given.value], axis, combined)[0]


def kept(k: Kernel, value: Value, shape: tuple[int, ...], axis: int) -> Value:
    """Return a folded axis as one of a single element."""
    whole = (*shape[:axis], 1, *shape[axis + 1 :])
    if not value.shape:
        return k.t.splat(value, whole)
    return k.t.shaped("tt.expand_dims", value, whole, f" {{axis = {axis} : i32}}")
