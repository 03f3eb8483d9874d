"""Generators: tiles of numbers that count, and of ones in a triangle."""

from __future__ import annotations

from tilewright.backends.cpu.compute.convert import as_element
from tilewright.backends.cpu.compute.copies import known_or, tile_type, whole_extents
from tilewright.backends.cpu.compute.nodes import IndexNode, mapped
from tilewright.backends.cpu.compute.traced import Lanes, converted, fused
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Scalar, Tile
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import FP64, INT32
from tilewright.native.llvm import I32, i64


def _numbers(type_: TileType, axis: int) -> Tile:
    """Return the number of each column, or row, or other axis; the only one there is has number zero in every row."""
    valid = whole_extents(type_)
    return Tile(TileType(type_.shape, INT32, type_.shape), valid, node=IndexNode(axis=axis, extent=type_.shape[axis]))


@lowers("tile.ci")
def _ci(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)

    def function(column: Lanes, start: Lanes) -> Lanes:
        first, step = as_element(start, type_.dtype), converted(column, type_.dtype)
        return first - step if bound["descending"] else first + step

    return mapped(e, type_, whole_extents(type_), function, [_numbers(type_, -1), bound["start"]])


@lowers("tile.iota")
def _iota(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    axis = bound["axis"] % len(type_.shape) - len(type_.shape)

    def function(number: Lanes, start: Lanes, step: Lanes) -> Lanes:
        first, apart = (as_element(lane, type_.dtype) for lane in (start, step))
        count = converted(number, type_.dtype)
        once = type_.dtype.is_float() and type_.dtype != FP64  # whose products nothing holds exactly
        return fused(apart, count, first) if once else first + count * apart

    operands = [_numbers(type_, axis), bound["start"], bound["step"]]
    return mapped(e, type_, whole_extents(type_), function, operands)


@lowers("tile.tri")
def _tri(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    most = i64(1 << 30)  # no tile has an axis as long
    least = e.b.intrinsic("llvm.smin", e.index(bound["diagonal"]), most)
    near = e.b.intrinsic("llvm.smax", least, i64(-(1 << 30)))
    diagonal = Scalar(e.b.convert("trunc", near, I32), INT32)

    def function(row: Lanes, column: Lanes, start: Lanes) -> Lanes:
        place = column - row
        inside = place >= start if bound["upper"] else place <= start
        return converted(inside, type_.dtype)

    operands = [_numbers(type_, -2), _numbers(type_, -1), diagonal]
    return mapped(e, type_, known_or(type_, whole_extents(type_)), function, operands)
