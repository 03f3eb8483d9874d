"""Lanes: the halves of tiles, cut and joined."""

from __future__ import annotations

from tilewright.backends.cpu.compute.copies import copy_elements, known_or, part, tile_type
from tilewright.backends.cpu.compute.views import view
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64
from tilewright.ops.lanes import AXES, GAP, half


@lowers("tile.aiv_shard")
def _shard(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Return a window of a tile; one that would reach past the end of it is a copy."""
    source, split, lane = bound["x"], bound["split"], bound["lane"]
    if not split:
        return source
    type_, axis = tile_type(call), AXES[split]
    start, size = lane * half(source.type.shape[axis], split, 0), type_.shape[axis]
    rest = e.b.intrinsic("llvm.smin", e.b.op("sub", source.valid[axis], i64(start)), i64(size))
    valid = [*source.valid]
    valid[axis] = e.b.intrinsic("llvm.smax", rest, i64(0))
    starts = [i64(0), i64(0)]
    starts[axis] = i64(start)
    place = part(e, type_.dtype, e.stored(source), starts)
    if start + size <= source.type.shape[axis]:
        return view(type_, source, place, valid)
    result = e.fresh(type_, known_or(type_, valid))
    assert result.place is not None
    copy_elements(e, type_.dtype, place, result.place, result.valid)
    return result


@lowers("tile.aic_gather")
def _gather(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    first, second, split = bound["x"], bound["other"], bound["split"]
    if not split:
        return first
    type_, axis, place = tile_type(call), AXES[split], e.stored(first)
    if second is None:
        return _alone(e, first, e.fresh(type_, first.valid))
    other, size, more = e.stored(second), first.type.shape[axis], second.valid[axis]
    is_there = e.b.compare("icmp sgt", more, i64(0))
    if static(first.valid[axis]) != size:
        short = e.b.compare("icmp slt", first.valid[axis], i64(size))
        e.fail(e.b.op("and", short, is_there), GAP, call)
    valid = [*first.valid]
    valid[axis] = e.b.select(is_there, e.b.op("add", i64(size), more), first.valid[axis])
    valid[1 - axis] = _across(e, first.valid[1 - axis], second.valid[1 - axis], is_there)
    result = e.fresh(type_, known_or(type_, valid))
    assert result.place is not None
    copy_elements(e, type_.dtype, place, result.place, first.valid)
    starts = [i64(0), i64(0)]
    starts[axis] = i64(size)
    copy_elements(e, type_.dtype, other, part(e, type_.dtype, result.place, starts), second.valid)
    return result


def _alone(e: FunctionEmitter, first: Tile, result: Tile) -> Tile:
    """Return the first of two parts where both would be."""
    assert result.place is not None
    copy_elements(e, result.type.dtype, e.stored(first), result.place, first.valid)
    return result


def _across(e: FunctionEmitter, first: Value, second: Value, is_there: Value) -> Value:
    """Return how far both parts are valid beside the axis they are joined along; one that is empty has no say."""
    return first if first == second else e.b.select(is_there, e.b.intrinsic("llvm.smin", first, second), first)
