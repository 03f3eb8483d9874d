"""Bytes: those of a tile as elements of another type, all of them or 32 from each of some offsets on."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.elements import literal
from tilewright.backends.cuda.ttir.folds import flat, reduced, some
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of
from tilewright.backends.cuda.ttir.picks import in_padding, picked
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.shape import reshaped
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import as_bits, bits_of, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, element_of, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.ops.block_gather import BLOCK, WITHIN
from tilewright.ops.reinterpret import RAGGED, adjacent_axis


@recipe("tile.reinterpret_view")
def _view(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, type_ = k.t, bound["data"], tile_type(call)
    have, want = source.type.dtype.get_byte(), type_.dtype.get_byte()
    axis = adjacent_axis(source.type) % len(source.type.shape)
    shape, valid = list(source.type.shape), list[Extent](source.valid)
    shape[axis] = shape[axis] * have // want
    size = extents.times(t, valid[axis], have)
    if isinstance(size, int):
        valid[axis] = size // want
    else:
        rest = t.simple("arith.remsi", size, t.integer(want))
        k.fail(t.compare("cmpi ne", rest, t.integer(0)), RAGGED, call.span)
        valid[axis] = t.simple("arith.divsi", size, t.integer(want))
    line = from_bytes(k, bytes_of(k, source.value), element_of(type_.dtype))
    value = t.shaped("tt.reshape", line, padded(tuple(shape)))
    found = k.tile(value, TileType(tuple(shape), type_.dtype, tuple(shape)), valid)
    if tuple(shape) != type_.shape:
        return reshaped(k, found, type_, type_.shape)
    return k.tile(value, type_, valid)


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
