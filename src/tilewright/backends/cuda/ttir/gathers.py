"""Gathers: elements of a tile by their number in it, columns by pattern, and the places of those that compare."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.elements import computed, literal
from tilewright.backends.cuda.ttir.folds import reduced
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of
from tilewright.backends.cuda.ttir.networks import ordered
from tilewright.backends.cuda.ttir.picks import counted, split, stretch
from tilewright.backends.cuda.ttir.places import index_of, inside, refuse
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import as_bits, bits_of, operand, tile_type
from tilewright.backends.cuda.ttir.values import Tile, element_of, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType
from tilewright.native.context import INDEX
from tilewright.ops.indices import INSIDE, chosen, pattern_of
from tilewright.ops.selection import COMPARE, COMPARISONS

INVALID = f"index {INDEX} in `indices` points at what is not valid\n{INSIDE}"


@recipe("tile.gather")
def _gather(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, indices, type_ = k.t, bound["src"], bound["indices"], tile_type(call)
    numbers, count = index_of(k, indices), 1
    for extent in source.type.shape:
        count *= extent
    live = inside(k, call, numbers, live_of(k, numbers.shape, indices.valid), count, "indices")
    safe = t.select(live, numbers, t.integer(0, I64, numbers.shape))
    _check_valid(k, call, source, safe, live)
    return k.tile(counted(t, source.value, source.type.shape, safe), type_, indices.valid)


def _check_valid(k: Kernel, call: Call, source: Tile, numbers: Value, live: Value) -> None:
    """Note an error where numbers count elements that are not valid."""
    t, shape = k.t, source.type.shape
    for place, valid, extent in zip(split(t, numbers, shape), source.valid, shape, strict=True):
        if valid != extent:
            past = t.compare("cmpi sge", place, t.splat(extents.held(t, valid), place.shape))
            refuse(k, call, numbers, t.simple("arith.andi", past, live), INVALID)


@recipe("tile.gather_mask")
def _gather_mask(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, type_, pattern = k.t, bound["src"], tile_type(call), pattern_of(bound["mask_pattern"])
    value = stretch(t, source.value, 1, pattern.first, padded(type_.shape)[1], pattern.step)
    value = as_bits(t, bits_of(t, value), element_of(type_.dtype))
    reach = extents.most(t, 0, extents.minus(t, source.valid[1], pattern.first))
    return k.tile(value, type_, [source.valid[0], extents.counted(t, reach, pattern.step)])


@recipe("tile.gather_compare")
def _gather_compare(k: Kernel, call: Call, bound: Bound) -> tuple[Tile, Tile]:
    assert isinstance(call.type, TupleType)
    places, counts = (each for each in call.type.elements if isinstance(each, TileType))
    return compared(k, bound["src"], bound, places, counts)


def compared(k: Kernel, source: Tile, bound: Bound, places: TileType, counts: TileType) -> tuple[Tile, Tile]:
    """Return the numbers of columns in order, those that match before zeros, and how many match."""
    t = k.t
    shape, width = source.value.shape, padded(places.shape)[1]
    one = computed(t, source.value, source.type.dtype)
    other = computed(t, operand(k, bound["kvalue"], source.type), source.type.dtype)
    matches = COMPARE[chosen(bound["cmp_mode"], COMPARISONS, "cmp_mode")](one, other).value
    matches = live_of(k, shape, source.valid, matches)
    columns = extents.numbers(t, shape, 1)
    after = t.simple("arith.addi", columns, literal(t, shape[1], columns))
    found = ordered(t, [t.select(matches, columns, after)], 1)[0]
    found = stretch(t, found, 1, 0, width)
    is_match = t.compare("cmpi slt", found, literal(t, shape[1], found))
    numbers = extents.numbers(t, found.shape, 1)
    is_match = t.simple("arith.andi", is_match, t.compare("cmpi slt", numbers, literal(t, shape[1], numbers)))
    moved = t.simple("arith.addi", found, literal(t, bound["offset"], found))
    value = t.select(is_match, moved, literal(t, 0, found))
    ones = t.convert("arith.extui", matches, I32)
    total = reduced(t, [ones], 1, lambda a, b: [t.simple("arith.addi", a[0], b[0])])[0]
    count = extents.along(t, total, 2, 1)
    return k.tile(value, places, [source.valid[0], places.shape[1]]), k.tile(count, counts, [1, source.valid[0]])
