"""Runs: pairs of a value and the bits of its index, sorted in runs of 32 and merged into longer ones."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.elements import literal
from tilewright.backends.cuda.ttir.folds import scanned
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.keys import key_of, last_where, number_of, ranked
from tilewright.backends.cuda.ttir.networks import ordered
from tilewright.backends.cuda.ttir.picks import picked, stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import as_bits, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, padded
from tilewright.core.expr import Call
from tilewright.dtypes import DataType
from tilewright.ops.sort import APART, BLOCK, LENGTH, RUN, UNEQUAL


@recipe("tile.sort32")
def _sort32(k: Kernel, call: Call, bound: Bound) -> Tile:
    """Write each run of 32 in descending order; of equal values the smaller index comes first."""
    t, source, idx, type_ = k.t, bound["src"], bound["idx"], tile_type(call)
    _check_alike(k, call, source.valid, idx.valid, APART)
    shape, axis = source.value.shape, len(source.value.shape) - 1
    numbers = extents.numbers(t, shape, axis)
    run = t.simple("arith.divsi", numbers, literal(t, RUN, numbers))
    value = key_of(t, source.value, source.type.dtype, descending=True)
    value = last_where(t, k.mask(source), value)
    flipped = t.simple("arith.xori", idx.value, literal(t, 1 << 31, idx.value))
    keys = [*_packed(k, run, value), *ranked(t, flipped, numbers)]
    places = number_of(t, ordered(t, keys, axis))
    found = picked(t, source.value, places, axis)
    index = picked(t, idx.value, places, axis)
    if source.type.dtype.bits == 16:
        index = t.convert("arith.trunci", index, "i16")
    pairs = t.joined(found, as_bits(t, index, found.element))
    value = t.shaped("tt.reshape", pairs, (*shape[:-1], 2 * shape[-1]))
    return k.tile(value, type_, [*source.valid[:-1], extents.times(t, source.valid[-1], 2)])


def _packed(k: Kernel, high: Value, low: Value) -> list[Value]:
    """Return keys that are ordered by two of 32 bits each."""
    t = k.t
    wide = t.simple("arith.shli", t.convert("arith.extsi", high, I64), t.integer(32, I64, high.shape))
    below = t.convert("arith.extui", t.simple("arith.xori", low, literal(t, 1 << 31, low)), I64)
    return [t.simple("arith.ori", wide, below)]


def _check_alike(k: Kernel, call: Call, first: Sequence[Extent], second: Sequence[Extent], message: str) -> None:
    for a, b in zip(first, second, strict=True):
        if a != b:
            k.fail(k.t.compare("cmpi ne", extents.held(k.t, a), extents.held(k.t, b)), message, call.span)


@recipe("tile.mrgsort")
def _mrgsort(k: Kernel, call: Call, bound: Bound) -> Tile:
    lists = [bound[name] for name in ("src0", "src1", "src2", "src3") if bound[name] is not None]
    if bound["block_len"] is not None:
        return _merged_runs(k, call, lists[0], k.index(bound["block_len"]))
    for each in lists:
        _check_alike(k, call, each.valid[:-1], lists[0].valid[:-1], UNEQUAL)
    t, type_ = k.t, tile_type(call)
    shape, axis = padded(type_.shape), len(type_.shape) - 1
    columns = extents.numbers(t, shape, axis)
    pairs, run, live = _side_by_side(k, lists, shape, columns)
    run, live = (_first_of_pairs(k, each) for each in (run, live))
    end: Extent = 0
    for each in lists:
        end = extents.plus(t, end, each.valid[axis])
    value = _merged(k, pairs, type_.dtype, run, literal(t, 0, run), live)
    return k.tile(value, type_, [*lists[0].valid[:-1], end])


def _side_by_side(k: Kernel, lists: Sequence[Tile], shape: Sequence[int], columns: Value) -> tuple[Value, Value, Value]:
    """Return lists one after the other, the number of the list that each element is of, and which of them are valid."""
    t, axis, width = k.t, len(shape) - 1, 0
    pairs, run = stretch(t, lists[0].value, axis, 0, shape[axis]), literal(t, 0, columns)
    live = t.constant("false", "i1", shape)
    for number, each in enumerate(lists):
        own = t.compare("cmpi sge", columns, literal(t, width, columns))
        inside = k.inside(shape, (*shape[:-1], extents.plus(t, width, each.valid[axis])))
        pairs = t.select(own, stretch(t, each.value, axis, -width, shape[axis]), pairs)
        run = t.select(own, literal(t, number, columns), run)
        live = t.select(own, t.constant("true", "i1", shape) if inside is None else inside, live)
        width += each.type.shape[axis]
    return pairs, run, live


def _merged_runs(k: Kernel, call: Call, source: Tile, length: Extent) -> Tile:
    """Write every four neighbouring runs of a list as one; what is left over stays."""
    t, axis, type_ = k.t, len(source.type.shape) - 1, tile_type(call)
    if not isinstance(length, int):
        rest = t.simple("arith.andi", length, t.integer(BLOCK - 1))
        is_short = t.compare("cmpi sle", length, t.integer(0))
        bad = t.simple("arith.ori", is_short, t.compare("cmpi ne", rest, t.integer(0)))
        k.fail(bad, LENGTH, call.span)
        length = t.select(bad, t.integer(BLOCK), length)
    half = _halved(source.value.shape)
    numbers = extents.spread(t, extents.positions(t, half, axis), half)
    run = t.simple(
        "arith.divsi", t.simple("arith.muli", numbers, literal(t, 2, numbers)), t.splat(extents.held(t, length), half)
    )
    group = t.simple("arith.divsi", run, literal(t, 4, run))
    four = extents.times(t, length, 4)
    whole = t.simple("arith.divsi", extents.held(t, source.valid[axis]), extents.held(t, four))
    live = t.compare("cmpi slt", group, t.splat(whole, half))
    run, group = (t.convert("arith.trunci", each, I32) for each in (run, group))
    return k.tile(_merged(k, source.value, type_.dtype, run, group, live), type_, source.valid)


def _halved(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-1], max(shape[-1] // 2, 1))


def _first_of_pairs(k: Kernel, value: Value) -> Value:
    """Return every second element along rows, from the first on."""
    axis = len(value.shape) - 1
    return stretch(k.t, value, axis, 0, value.shape[axis] // 2, 2)


def _merged(k: Kernel, pairs: Value, dtype: DataType, run: Value, group: Value, live: Value) -> Value:
    """Return pairs in the order in which merging the runs of a group takes them: the largest first one that is left.

    A pair comes no sooner than those before it in its run, so it counts as the smallest value up to it. What is not
    live comes last, as it was.
    """
    t, axis = k.t, len(pairs.shape) - 1
    numbers = extents.numbers(t, _halved(pairs.shape), axis)
    value = key_of(t, _first_of_pairs(k, pairs), dtype, descending=True)

    def combined(a: Sequence[Value], b: Sequence[Value]) -> Sequence[Value]:
        same = t.compare("cmpi eq", a[0], b[0])
        return [b[0], t.select(same, t.simple("arith.maxsi", a[1], b[1]), b[1])]

    _, sinking = scanned(t, [run, value], axis, False, combined)
    group = t.select(live, group, literal(t, (1 << 31) - 1, group))
    sinking = t.select(live, sinking, literal(t, 0, sinking))
    places = number_of(t, ordered(t, [*_packed(k, group, sinking), numbers], axis))
    row = extents.along(t, extents.line(t, pairs.shape[axis]), len(pairs.shape), axis)
    pair = picked(t, places, t.simple("arith.divsi", row, literal(t, 2, row)), axis)
    second = extents.spread(t, t.simple("arith.andi", row, literal(t, 1, row)), pairs.shape)
    place = t.simple("arith.addi", t.simple("arith.muli", pair, literal(t, 2, pair)), second)
    return picked(t, pairs, place, axis)
