"""Counting: tiles of numbers that are so far apart from each other, and triangles of ones."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import Elements
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.scalars import in_type, rounded
from tilewright.backends.cuda.ttir.tiles import arithmetic, operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import Scalar, Tile, element_of, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import FP32, INT64


@recipe("tile.ci")
def _count(k: Kernel, call: Call, bound: Bound) -> Tile:
    step = k.number(-1 if bound["descending"] else 1, INT64)
    return _counted(k, tile_type(call), -1, bound["start"], step)


@recipe("tile.iota")
def _iota(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _counted(k, tile_type(call), bound["axis"], bound["start"], bound["step"])


def _counted(k: Kernel, type_: TileType, axis: int, start: Scalar, step: Scalar) -> Tile:
    """Return numbers that count along an axis; those of floats are rounded once."""
    t, dtype, shape = k.t, arithmetic(k, type_.dtype), padded(type_.shape)
    numbers = extents.positions(t, shape, axis % len(shape))
    if dtype.is_float():
        counts = as_element(t, numbers, INT64, FP32)
        first, apart = (rounded(k, in_type(k, number, dtype), dtype).value for number in (start, step))
        found = t.simple("math.fma", counts, *(t.splat(each, counts.shape) for each in (apart, first)))
        value = as_element(t, found, FP32, dtype)
    else:
        element = element_of(dtype)
        counts = Elements(t, t.convert("arith.trunci", numbers, element) if element != "i64" else numbers, dtype)
        first, apart = (t.splat(in_type(k, number, dtype).value, counts.shape) for number in (start, step))
        value = (counts * counts.of(apart) + counts.of(first)).value
    return k.tile(extents.spread(t, value, shape), type_, type_.shape)


@recipe("tile.tri")
def _triangle(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, type_ = k.t, tile_type(call)
    shape = padded(type_.shape)
    rows, columns = (extents.spread(t, extents.positions(t, shape, axis), shape) for axis in (0, 1))
    diagonal = t.splat(extents.held(t, k.index(bound["diagonal"])), shape)
    kind = "cmpi sge" if bound["upper"] else "cmpi sle"
    is_one = t.compare(kind, t.simple("arith.subi", columns, rows), diagonal)
    one = operand(k, k.number(1, type_.dtype), type_)
    return k.tile(t.select(is_one, one, zeros(k, one)), type_, type_.shape)
