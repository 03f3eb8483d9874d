"""Blocks: 32 bytes of a tile from each of some offsets on."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import flat, some
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of
from tilewright.backends.cuda.ttir.picks import in_padding, picked
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.reinterpreted import sized
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import bits_of, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, element_of
from tilewright.core.expr import Call
from tilewright.ops.block_gather import BLOCK, WITHIN


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
    line = sized(t, flat(t, bits_of(t, source.value)), 8)
    pitch = (source.type.shape[0], source.type.shape[1] * size)
    found = picked(t, line, flat(t, in_padding(t, pitch, numbers)), 0)
    made = t.bits(sized(t, found, type_.dtype.bits), element_of(type_.dtype))
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
