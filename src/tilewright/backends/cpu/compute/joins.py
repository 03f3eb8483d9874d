"""Joins: tiles made of others as they are, two side by side, or one at the start of a larger one that is filled."""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import is_read_in_place, moved, read_of
from tilewright.backends.cpu.compute.copies import (
    clear_bytes,
    copy,
    copy_elements,
    fill,
    fill_run,
    known_or,
    part,
    rows_of,
    tile_type,
    whole_extents,
)
from tilewright.backends.cpu.compute.row_copies import Row, copy_row
from tilewright.backends.cpu.compute.store_targets import fill_rows, gathered
from tilewright.backends.cpu.emit.boxes import least
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64
from tilewright.ops.load import padding


@lowers("tile.concat")
def _concat(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Copy two tiles side by side; nothing older shows between them."""
    a, b, type_ = bound["src0"], bound["src1"], tile_type(call)
    width = i64(a.type.shape[-1])
    if _are_in_place(e, a, b):
        with gathered(e, type_, known_or(type_, (*a.rows, i64(type_.shape[-1])))) as (result, made):
            for source, column in ((read_of(e, a), i64(0)), (read_of(e, b), width)):
                _copy_rows(e, source, made, column, least(e.b, a.valid[0], b.valid[0]))
        return result
    places = e.stored(a), e.stored(b)
    result = e.fresh(type_, known_or(type_, (*a.valid[:-1], e.b.op("add", width, b.valid[-1]))))
    assert result.place is not None
    if a.valid[-1] != width:
        clear_bytes(e, result.place.pointer, type_.nbytes)
    copy_elements(e, type_.dtype, places[0], result.place, a.valid)
    beside = part(e, type_.dtype, result.place, (*(i64(0),) * len(a.rows), width))
    copy_elements(e, type_.dtype, places[1], beside, (*a.valid[:-1], b.valid[-1]))
    return result


@lowers("tile.fillpad", "tile.fillpad_expand", "tile.fillpad_inplace")
def _fillpad(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Copy the valid part of a tile to the start of one that is filled; one that is whole needs no other."""
    source, type_ = bound["x"] if "x" in bound else bound["tile"], tile_type(call)
    number = padding(bound["pad_value"], type_.dtype)
    if call.op.spec.name == "fillpad" and source.valid == whole_extents(type_):
        return source
    if is_read_in_place(e, source) and len(source.valid) == 2:
        with gathered(e, type_, whole_extents(type_)) as (result, made):
            _fill_around(e, read_of(e, source), made, number)
        return result
    e.stored(source)
    result = e.fresh(type_, whole_extents(type_))
    fill(e, result, number)
    copy(e, source, result)
    return result


def _are_in_place(e: FunctionEmitter, *tiles: Tile) -> bool:
    """Return whether tiles are whole rows of matrices, read where they lie in their tensors."""
    are_whole = all(len(tile.valid) == 2 and static(tile.valid[-1]) == tile.type.shape[-1] for tile in tiles)
    return are_whole and all(is_read_in_place(e, tile) for tile in tiles)


def _copy_rows(e: FunctionEmitter, source: Tensor, made: Tensor, column: Value, rows: Value) -> None:
    """Emit a copy of so many rows of a matrix into another, from a column on."""
    width = source.valid[-1]

    def copied(streaming: bool) -> None:
        with rows_of(e, (rows,)) as (row,):
            come = Row(moved(e, source, (row, i64(0))), source.strides[1])
            go = Row(moved(e, made, (row, column)), made.strides[1])
            copy_row(e, source.dtype, come, go, width, streaming=streaming)

    begin = moved(e, made, (i64(0), column))
    fill_rows(e, Tensor(begin, made.shape, made.strides, made.valid, made.dtype, made.root), width, copied)


def _fill_around(e: FunctionEmitter, source: Tensor, made: Tensor, number: float) -> None:
    """Emit a copy of a matrix to the start of another, and the writing of one number beside and below it."""
    (rows, width), (height, columns) = source.valid, (static(extent) or 0 for extent in made.shape)

    def filled(streaming: bool) -> None:
        with rows_of(e, (rows,)) as (row,):
            go = moved(e, made, (row, i64(0)))
            fill_run(e, made.dtype, go, columns, number, width, streaming=streaming)
            come = Row(moved(e, source, (row, i64(0))), source.strides[1])
            copy_row(e, source.dtype, come, Row(go, made.strides[1]), width, streaming=streaming)
        with e.b.loop(rows, i64(height), i64(1)) as row:
            fill_run(e, made.dtype, moved(e, made, (row, i64(0))), columns, number, streaming=streaming)

    fill_rows(e, made, i64(columns), filled)
