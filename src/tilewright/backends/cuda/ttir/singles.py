"""Singles: one element of a tile, read as a number or replaced by one."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.folds import flat, whole
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.tiles import as_bits, bits_of, operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tile, working
from tilewright.core.expr import Call

OUTSIDE = "an index lies outside its tile"


@recipe("tile.read")
def _read(k: Kernel, call: Call, bound: Bound) -> Scalar:
    source: Tile = bound["x"]
    _check(k, call, source)
    found, dtype = element(k, source.value, k.indices(bound["indices"])), source.type.dtype
    return Scalar(as_element(k.t, found, dtype, working(dtype)), dtype)


def element(k: Kernel, value: Value, indices: Sequence[Extent]) -> Value:
    """Return one element, to the bit; zero where there is none."""
    t = k.t
    line = flat(t, value)
    if line.shape == (1,):
        return t.op(f"tt.unsplat {line} : {line.type}", line.element)
    bits = bits_of(t, value)
    there = t.select(_is_there(k, value, indices), bits, zeros(k, bits))
    return as_bits(t, whole(t, there, "arith.ori"), value.element)


@recipe("tile.write")
def _write(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    _check(k, call, source)
    there = _is_there(k, source.value, k.indices(bound["indices"]))
    value = k.t.select(there, operand(k, bound["value"], type_), source.value)
    return k.tile(value, type_, source.valid)


def _check(k: Kernel, call: Call, source: Tile) -> None:
    ones = (1,) * len(source.type.shape)
    checked(k, call, offsets_of(call, "indices"), OUTSIDE, ones, source.type.shape)


def _is_there(k: Kernel, value: Value, indices: Sequence[Extent]) -> Value:
    """Return which element of a tile has some indices."""
    t, found = k.t, k.t.constant("true", "i1", value.shape)
    for axis, index in enumerate(indices):
        numbers = extents.positions(t, value.shape, axis)
        here = t.compare("cmpi eq", numbers, t.splat(extents.held(t, index), numbers.shape))
        found = t.simple("arith.andi", found, extents.spread(t, here, value.shape))
    return found
