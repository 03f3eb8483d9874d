"""Transposes: views of tiles with two axes swapped, and tiles turned on the way from one tensor to another."""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import is_read_in_place, read_of, view_of
from tilewright.backends.cpu.compute.copies import copy_columns, copy_whole, known_or, packed, tile_type
from tilewright.backends.cpu.compute.store_targets import gathered
from tilewright.backends.cpu.compute.views import make_words, turned
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.memory import distance
from tilewright.backends.cpu.emit.values import Place, Tensor, Tile
from tilewright.core.expr import Call
from tilewright.native.llvm import i64


@lowers("tile.transpose_view")
def _transpose_view(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return turned(e, call, bound["tile"], -1, -2)


@lowers("tile.transpose")
def _transpose(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    if e.step.target is not None:
        return _turned_to(e, call, bound["x"])
    view = turned(e, call, bound["x"], bound["axis1"], bound["axis2"])
    if not e.step.packed:
        return view
    return view if make_words(e, view) else _spread(e, view)


def _spread(e: FunctionEmitter, view: Tile) -> Tile:
    """Return a tile row by row, a line apart where its rows would all begin at a few places of the cache."""
    size, columns = view.type.dtype.get_byte(), view.type.shape[-1]
    apart = distance(columns, size)
    if len(view.type.shape) != 2 or apart == columns:
        return packed(e, view)
    part = e.arena.take(view.type.shape[0] * apart * size)
    result = Tile(view.type, view.valid, Place(e.address(part[0]), (apart, 1)), owners=view.owners)
    e.own(result, part)
    copy_whole(e, view, result)
    return result


def _turned_to(e: FunctionEmitter, call: Call, source: Tile) -> Tile:
    """Emit the copy of a matrix to where the next statement stores it: from its tensor, if its rows lie there."""
    assert e.step.target is not None
    lies = read_of(e, source)
    if is_read_in_place(e, source) and lies.strides[-1] != i64(1):
        e.stored(source)
        lies = view_of(e, source)
    extents, stored = source.valid[::-1], e.value(e.step.target.tensor)
    assert isinstance(stored, Tensor)
    with gathered(e, tile_type(call), known_or(tile_type(call), extents)) as (result, made):
        matrix = (lies.pointer, lies.strides[-1], lies.strides[-2])
        copy_columns(e, source.type.dtype, matrix, extents, stored, (made.pointer, made.strides[-2]))
    return result
