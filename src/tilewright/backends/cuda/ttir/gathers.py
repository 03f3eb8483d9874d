"""Gathers: elements of a tile by number, columns by pattern, places of those that compare, and blocks of bytes."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.elements import computed, literal
from tilewright.backends.cuda.ttir.folds import flat, reduced, some
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.networks import ordered
from tilewright.backends.cuda.ttir.picks import counted, in_padding, picked, split, stretch
from tilewright.backends.cuda.ttir.places import index_of, inside, live_of
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import as_bits, bits_of, operand, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, element_of, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType
from tilewright.ops.block_gather import BLOCK, WITHIN
from tilewright.ops.indices import INSIDE, chosen, pattern_of
from tilewright.ops.selection import COMPARE, COMPARISONS

INVALID = f"an index of `indices` points at what is not valid\n{INSIDE}"


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
            k.fail(some(t, t.simple("arith.andi", past, live)), INVALID, call.span)


@recipe("tile.gather_mask")
def _gather_mask(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, type_, pattern = k.t, bound["src"], tile_type(call), pattern_of(bound["mask_pattern"])
    value = stretch(t, source.value, 1, pattern.first, padded(type_.shape)[1], pattern.step)
    value = as_bits(t, bits_of(t, value), element_of(type_.dtype))
    reach = extents.most(t, 0, extents.minus(t, source.valid[1], pattern.first))
    return k.tile(value, type_, [source.valid[0], extents.counted(t, reach, pattern.step)])


@recipe("tile.gather_compare")
def _gather_compare(k: Kernel, call: Call, bound: Bound) -> tuple[Tile, Tile]:
    """Write the numbers of columns in order, those that match before the others, and how many match."""
    t, source = k.t, bound["src"]
    assert isinstance(call.type, TupleType)
    places, counts = (each for each in call.type.elements if isinstance(each, TileType))
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


@recipe("tile.gatherb")
def _gatherb(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, offset, type_ = k.t, bound["src"], bound["offset"], tile_type(call)
    size, lanes = source.type.dtype.get_byte(), BLOCK // type_.dtype.get_byte()
    starts = t.convert("arith.extui", offset.value, I64)
    live = live_of(k, starts.shape, offset.valid)
    bad = t.simple("arith.andi", live, _ends_outside(k, source, starts, size))
    k.fail(
        some(t, bad), f"the {BLOCK} bytes from an offset on lie outside the valid part of a tile\n{WITHIN}", call.span
    )
    shape = (*starts.shape, BLOCK)
    numbers = t.simple(
        "arith.addi",
        extents.spread(t, t.shaped("tt.expand_dims", starts, (*starts.shape, 1), " {axis = 2 : i32}"), shape),
        extents.spread(t, extents.positions(t, shape, 2), shape),
    )
    limit = t.integer(source.type.shape[0] * source.type.shape[1] * size - 1, I64, shape)
    numbers = t.simple("arith.minsi", numbers, limit)
    line = bytes_of(k, source.value)
    pitch = (source.type.shape[0], source.type.shape[1] * size)
    found = picked(t, line, flat(t, in_padding(t, pitch, numbers)), 0)
    made = from_bytes(k, found, element_of(type_.dtype))
    value = t.shaped("tt.reshape", made, (starts.shape[0], starts.shape[1] * lanes))
    return k.tile(value, type_, [offset.valid[0], extents.times(t, offset.valid[1], lanes)])


def _ends_outside(k: Kernel, source: Tile, starts: Value, size: int) -> Value:
    """Return which blocks of bytes end outside the valid part of a tile."""
    t, shape = k.t, starts.shape
    pitch = source.type.shape[1] * size
    ends = t.simple("arith.addi", starts, t.integer(BLOCK, I64, shape))
    live = extents.times(t, source.valid[1], size)

    def above(value: Value, limit: Extent) -> Value:
        return t.compare("cmpi sgt", value, t.splat(extents.held(t, limit), shape))

    past = above(ends, extents.times(t, source.valid[0], pitch))
    if source.valid[1] == source.type.shape[1]:
        return past
    within = t.simple("arith.remsi", starts, t.integer(pitch, I64, shape))
    row = above(t.simple("arith.addi", within, t.integer(BLOCK, I64, shape)), live)
    narrow = t.splat(t.compare("cmpi ne", extents.held(t, live), t.integer(pitch)), shape)
    below = t.simple("arith.divsi", starts, t.integer(pitch, I64, shape))
    rows = t.compare("cmpi sge", below, t.splat(extents.held(t, source.valid[0]), shape))
    return t.select(narrow, t.simple("arith.ori", row, rows), past)


def bytes_of(k: Kernel, value: Value) -> Value:
    """Return the bytes of elements in a line, the lowest of each first."""
    t, bits = k.t, flat(k.t, bits_of(k.t, value))
    size = int(bits.element[1:]) // 8
    if size == 1:
        return bits
    shape = (bits.shape[0], size)
    wide = extents.spread(t, extents.along(t, bits, 2, 0), shape)
    shifts = _shifts(k, bits.element, shape)
    return flat(t, t.convert("arith.trunci", t.simple("arith.shrui", wide, shifts), "i8"))


def from_bytes(k: Kernel, line: Value, element: str) -> Value:
    """Return elements of a type from their bytes, in a line."""
    t, size = k.t, int(element.strip("bfi")) // 8
    if size == 1:
        return as_bits(t, line, element)
    shape = (line.shape[0] // size, size)
    wide = t.convert("arith.extui", t.shaped("tt.reshape", line, shape), f"i{8 * size}")
    moved = t.simple("arith.shli", wide, _shifts(k, wide.element, shape))
    whole = reduced(t, [moved], 1, lambda a, b: [t.simple("arith.ori", a[0], b[0])])[0]
    return as_bits(t, whole, element)


def _shifts(k: Kernel, element: str, shape: tuple[int, int]) -> Value:
    """Return how far from the lowest bit each byte of an element begins."""
    t = k.t
    numbers = extents.numbers(t, shape, 1)
    bits = t.simple("arith.muli", numbers, literal(t, 8, numbers))
    return bits if element == I32 else t.convert("arith.extsi" if element == I64 else "arith.trunci", bits, element)
