"""Order: elements along an axis sorted, with or without their places; equal ones stay as they came."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.keys import key_of, last_where, number_of, ranked
from tilewright.backends.cuda.ttir.networks import ordered
from tilewright.backends.cuda.ttir.picks import picked, stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.tiles import arithmetic, tile_type
from tilewright.backends.cuda.ttir.values import Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType
from tilewright.ops.order import FEWER


def places_in_order(k: Kernel, source: Tile, axis: int, *, descending: bool) -> Value:
    """Return the places of a tile's elements in their order along an axis, what is not valid last."""
    t = k.t
    key = key_of(t, source.value, arithmetic(k, source.type.dtype), descending=descending)
    key = last_where(t, k.mask(source), key)
    return number_of(t, ordered(t, ranked(t, key, extents.numbers(t, key.shape, axis)), axis))


@recipe("tile.sort")
def _sort(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    axis = bound["axis"] % len(type_.shape)
    places = places_in_order(k, source, axis, descending=bound["descending"])
    return k.tile(picked(k.t, source.value, places, axis), type_, source.valid)


@recipe("tile.argsort")
def _argsort(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    axis = bound["axis"] % len(type_.shape)
    return k.tile(places_in_order(k, source, axis, descending=bound["descending"]), type_, source.valid)


@recipe("tile.row_topk")
def _topk(k: Kernel, call: Call, bound: Bound) -> tuple[Tile, Tile]:
    t, source, axis = k.t, bound["x"], len(bound["x"].type.shape) - 1
    assert isinstance(call.type, TupleType)
    values, places = (each for each in call.type.elements if isinstance(each, TileType))
    if not isinstance(source.valid[axis], int):
        k.fail(t.compare("cmpi slt", source.valid[axis], t.integer(bound["k"])), FEWER, call.span)
    found = places_in_order(k, source, axis, descending=bound["largest"])
    found = stretch(t, found, axis, 0, padded(places.shape)[axis])
    valid = (*source.valid[:-1], bound["k"])
    return k.tile(picked(t, source.value, found, axis), values, valid), k.tile(found, places, valid)
