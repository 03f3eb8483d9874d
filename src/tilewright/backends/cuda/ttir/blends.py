"""Blends: tiles put together of others by where those are valid: filled, repeated, changed in part, cut and joined."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parts import side_by_side
from tilewright.backends.cuda.ttir.picks import picked, stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.tiles import mapped, operand, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.ops.lanes import AXES, GAP, half
from tilewright.ops.load import padding


@recipe("tile.fillpad", "tile.fillpad_inplace", "tile.fillpad_expand")
def _fillpad(k: Kernel, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"] if "x" in bound else bound["tile"]
    type_ = tile_type(call)
    filling = k.number(padding(bound["pad_value"], type_.dtype), type_.dtype)
    value, shape = source.value, padded(type_.shape)
    for axis, count in enumerate(shape):
        value = stretch(k.t, value, axis, 0, count)
    mask = k.inside(shape, source.valid)
    if mask is not None:
        value = k.t.select(mask, value, operand(k, filling, type_))
    return k.tile(value, type_, type_.shape)


@recipe("tile:expansion")
def _expansion(k: Kernel, call: Call, bound: Bound) -> Tile:
    x, vector, spec, type_ = bound["x"], bound["vec"], call.op.spec, tile_type(call)
    if spec.name.startswith("row") and vector.type.shape[-1] != 1:
        vector = _repeated(k, vector, type_.shape[-1])
    return mapped(k, call, type_, [x, vector])


def _repeated(k: Kernel, vector: Tile, width: int) -> Tile:
    """Return the valid part of each row again and again."""
    t, shape = k.t, (*vector.value.shape[:-1], *padded((width,)))
    columns = extents.positions(t, shape, len(shape) - 1)
    valid = t.splat(extents.held(t, extents.most(t, 1, vector.valid[-1])), columns.shape)
    value = picked(t, vector.value, t.simple("arith.remsi", columns, valid), len(shape) - 1)
    type_ = TileType((*vector.type.shape[:-1], width), vector.type.dtype, (*vector.type.valid[:-1], width))
    return k.tile(value, type_, (*vector.valid[:-1], width))


@recipe("tile:partial")
def _partial(k: Kernel, call: Call, bound: Bound) -> Tile:
    """Write an op of two tiles where the second is valid, and the first one elsewhere."""
    lhs, rhs, type_ = bound["lhs"], bound["rhs"], tile_type(call)
    both = mapped(k, call, type_, [lhs, rhs])
    rank, shape = len(type_.shape), padded(type_.shape)
    wanted: list[Extent] = [*shape[: rank - len(rhs.valid)], *rhs.valid]
    for axis in range(rank - len(rhs.valid), rank):
        if rhs.type.shape[axis - rank] == 1 != type_.shape[axis]:  # one element serves a whole axis, if it is there
            wanted[axis] = extents.times(k.t, wanted[axis], shape[axis])
    mask = k.inside(shape, wanted)
    if mask is None:
        return both
    return k.tile(k.t.select(mask, both.value, operand(k, lhs, type_)), type_, both.valid)


@recipe("tile.aiv_shard")
def _shard(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, split, lane, type_ = bound["x"], bound["split"], bound["lane"], tile_type(call)
    if not split:
        return source
    axis = AXES[split]
    start, size = lane * half(source.type.shape[axis], split, 0), type_.shape[axis]
    valid = [*source.valid]
    rest = extents.least(k.t, extents.minus(k.t, valid[axis], start), size)
    valid[axis] = extents.most(k.t, rest, 0)
    return k.tile(stretch(k.t, source.value, axis, start, padded(type_.shape)[axis]), type_, valid)


@recipe("tile.aic_gather")
def _gather(k: Kernel, call: Call, bound: Bound) -> Tile:
    first, second, split, type_ = bound["x"], bound["other"], bound["split"], tile_type(call)
    if not split:
        return first
    t, axis = k.t, AXES[split]
    if second is None:
        return k.tile(stretch(k.t, first.value, axis, 0, padded(type_.shape)[axis]), type_, first.valid)
    size, more, valid = first.type.shape[axis], extents.held(t, second.valid[axis]), [*first.valid]
    is_there = t.compare("cmpi sgt", more, t.integer(0))
    if valid[axis] != size:
        short = t.compare("cmpi slt", extents.held(t, valid[axis]), t.integer(size))
        k.fail(t.simple("arith.andi", short, is_there), GAP, call.span)
    both = t.simple("arith.addi", t.integer(size), more)
    valid[axis] = t.select(is_there, both, extents.held(t, valid[axis]))
    across = extents.least(t, valid[1 - axis], second.valid[1 - axis])
    if across != valid[1 - axis]:
        valid[1 - axis] = t.select(is_there, extents.held(t, across), extents.held(t, valid[1 - axis]))
    return k.tile(side_by_side(k, first, second, axis, type_), type_, valid)
