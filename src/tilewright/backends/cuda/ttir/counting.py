"""Counting: tiles of numbers that are so far apart from each other, and of ones in a triangle."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements, computed
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.scalars import in_type
from tilewright.backends.cuda.ttir.tiles import operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import Scalar, Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INT64


@recipe("tile.ci")
def _count(k: Kernel, call: Call, bound: Bound) -> Tile:
    step = k.number(-1 if bound["descending"] else 1, tile_type(call).dtype)
    return _counted(k, tile_type(call), -1, bound["start"], step)


@recipe("tile.iota")
def _iota(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _counted(k, tile_type(call), int(bound["axis"]), bound["start"], bound["step"])


def _counted(k: Kernel, type_: TileType, axis: int, start: Scalar, step: Scalar) -> Tile:
    """Return numbers that count along an axis; floats are rounded once."""
    shape = padded(type_.shape)
    numbers = as_element(k.t, extents.positions(k.t, shape, axis % len(shape)), INT64, type_.dtype)
    count = computed(k.t, numbers, type_.dtype)
    first, apart = (_everywhere(k, number, count, type_) for number in (start, step))
    found = UFUNCS["fused"](apart, count, first)
    value = as_element(k.t, found.value, count.element, type_.dtype)
    return k.tile(extents.spread(k.t, value, shape), type_, type_.shape)


def _everywhere(k: Kernel, number: Scalar, like: Elements, type_: TileType) -> Elements:
    """Return a number, rounded to a tile's elements, in every place that counts."""
    rounded = as_element(k.t, in_type(k, number, type_.dtype).value, like.element, type_.dtype)
    return like.of(k.t.splat(computed(k.t, rounded, type_.dtype).value, like.value.shape))


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
