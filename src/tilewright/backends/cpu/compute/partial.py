"""Partial arithmetic: the first tile, changed where the second one is valid."""

from __future__ import annotations

from tilewright.backends.cpu.compute.convert import as_element, to_elements
from tilewright.backends.cpu.compute.copies import copy, tile_type
from tilewright.backends.cpu.compute.tiles import broadcast_valid, recorded
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tile, static
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.native.llvm import Value, i64


@lowers("tile:partial")
def _partial(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    lhs, rhs, type_ = bound["lhs"], bound["rhs"], tile_type(call)
    reference = call.op.spec.reference
    assert reference is not None

    def function(*lanes: Lanes) -> Lanes:
        return reference(*(as_element(lane, type_.dtype) for lane in lanes))

    valid = broadcast_valid(type_.shape, [lhs, rhs])
    both = tuple(_least(e, extent, rhs, axis - len(valid)) for axis, extent in enumerate(valid))
    if both == valid:
        return recorded(e, type_, valid, function, [lhs, rhs], False)
    whole = _stored(e, call, recorded(e, type_, valid, to_elements(type_.dtype), [lhs], False))
    unknown = TileType(type_.shape, type_.dtype, (None,) * len(valid))
    changed = _stored(e, call, recorded(e, unknown, both, function, [lhs, rhs], False))
    result = e.fresh(type_, valid)
    copy(e, whole, result)
    copy(e, changed, result)
    return result


def _stored(e: FunctionEmitter, call: Call, tile: Tile) -> Tile:
    tile.owners = variables(call.args)  # it is read here, whoever else reads the operands
    e.stored(tile)
    return tile


def _least(e: FunctionEmitter, extent: Value, rhs: Tile, axis: int) -> Value:
    """Return how far along an axis both tiles are valid; one element serves a whole axis."""
    if -axis > len(rhs.valid) or rhs.valid[axis] == extent:
        return extent
    have, want = static(rhs.valid[axis]), static(extent)
    if rhs.type.shape[axis] == 1:
        some = e.b.compare("icmp sgt", rhs.valid[axis], i64(0))
        return extent if have == 1 else e.b.select(some, extent, i64(0))
    if have is not None and (have >= rhs.type.shape[axis] or (want is not None and have >= want)):
        return extent
    return e.b.intrinsic("llvm.smin", rhs.valid[axis], extent)
