"""Single elements of tiles, read and written."""

from __future__ import annotations

from math import prod

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import Elements
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.reduce import fold
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.tiles import operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import Scalar, Tile, working
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, INT64


@recipe("tile.read")
def _read(k: Kernel, call: Call, bound: Bound) -> Scalar:
    """Write one element as a number: all others are zero bits, and any order of them gives it."""
    t, source, dtype = k.t, bound["x"], bound["x"].type.dtype
    here = _at(k, call, source, bound)
    bits = source.value
    if dtype == BOOL:
        bits = t.convert("arith.extui", bits, "i8")
    elif dtype.is_float() and dtype.bits > 8:
        bits = t.bits(bits, f"i{dtype.bits}")
    alone = t.select(here, bits, zeros(k, bits))
    row = alone if len(alone.shape) == 1 else t.shaped("tt.reshape", alone, (prod(alone.shape),))
    found = fold(k, Elements(t, row, INT64), 0, "bitwise_or")
    if dtype == BOOL:
        found = t.compare("cmpi ne", found, zeros(k, found))
    else:
        found = t.bits(found, source.value.element)
    return Scalar(as_element(t, found, dtype, working(dtype)), dtype)


@recipe("tile.write")
def _write(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    value = k.t.select(_at(k, call, source, bound), operand(k, bound["value"], type_), source.value)
    return k.tile(value, type_, source.valid)


def _at(k: Kernel, call: Call, tile: Tile, bound: Bound) -> Value:
    """Return which element of a tile indices mean; one outside of it is an error, and none."""
    t, shape = k.t, tile.value.shape
    found = t.constant("true", "i1", shape)
    for axis, index in enumerate(k.indices(bound["indices"])):
        if not isinstance(index, int):
            outside = t.compare("cmpi uge", index, t.integer(tile.type.shape[axis]))
            k.fail(outside, "an index lies outside its tile", call.span)
        numbers = extents.positions(t, shape, axis)
        same = t.compare("cmpi eq", numbers, t.splat(extents.held(t, index), numbers.shape))
        found = t.simple("arith.andi", found, extents.spread(t, same, shape))
    return found
