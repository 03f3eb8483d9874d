"""Padding: tiles made whole, and larger, by a number wherever they hold no data."""

from __future__ import annotations

from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.tiles import operand, tile_type
from tilewright.backends.cuda.ttir.values import Tile, padded
from tilewright.core.expr import Call
from tilewright.ops.padding import pad_number


@recipe("tile.fillpad", "tile.fillpad_inplace", "tile.fillpad_expand")
def _fillpad(k: Kernel, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"] if "x" in bound else bound["tile"]
    type_, value = tile_type(call), source.value
    filling = k.number(pad_number(bound["pad_value"], type_.dtype), type_.dtype)
    for axis, count in enumerate(padded(type_.shape)):
        value = stretch(k.t, value, axis, 0, count)
    mask = k.inside(value.shape, source.valid)
    if mask is not None:
        value = k.t.select(mask, value, operand(k, filling, type_))
    return k.tile(value, type_, type_.shape)
