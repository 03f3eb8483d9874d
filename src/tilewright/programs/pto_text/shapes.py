"""Shapes: tiles that are made, cut, joined, turned and counted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.core.types import TileType, is_fully_valid, swapped
from tilewright.dtypes import INDEX, INT16, INT32, DataType
from tilewright.ops.load import padding
from tilewright.ops.reinterpret import adjacent_axis
from tilewright.programs.pto_text.elements import element_at, one_by_one, set_at
from tilewright.programs.pto_text.matrices import each_matrix, extents_along
from tilewright.programs.pto_text.rearranged import rearranged
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tile, kept, room_of
from tilewright.programs.pto_text.words import (
    ALONE,
    Given,
    Pair,
    all_moved,
    as_far_as,
    expanded,
    filled_around,
    in_vec,
    matrix,
    matrix_of,
    put_over,
    refuse,
    result,
    row_of,
    seen_as,
    sizes_of,
    whole_of,
    with_room,
    writes,
)
from tilewright.programs.pto_text.writer import CUBE, Writer


@writes("tile.full")
def _full(w: Writer, call: Call, given: Given) -> Tile:
    shape, type_ = matrix(call)
    if w.core == CUBE and given["value"].known == 0:
        return _create(w, call, given)
    valid = given["valid_shape"]
    refuse(call, valid is not None and len(valid) != 2, "with a valid shape of other than two axes")
    like = (valid[0], valid[1]) if valid is not None else (w.constant(shape[0]), w.constant(shape[1]))
    tile = expanded(w, converted(w, given["value"], kept(type_.dtype)), result(w, call, like))
    if given["value"].known == 0:
        w.zeros.add(tile.name)
    return tile


@writes("tile.expands")
def _expands(w: Writer, call: Call, given: Given) -> Tile:
    target: Tile = given["target"]
    return expanded(w, converted(w, given["scalar"], target.dtype), result(w, call, target.valid))


@writes("tile.create")
def _create(w: Writer, call: Call, given: Given) -> Tile:
    shape, type_ = matrix(call)
    memory = MemorySpace.Acc if w.core == CUBE else MemorySpace.Vec
    tile = w.tile("create", type_.dtype, shape, whole_of(w, shape), memory)
    w.zeros.add(tile.name)
    if w.core == CUBE:
        return tile  # a sum begins with it, and with nothing else
    return expanded(w, w.constant(0, tile.dtype), tile)  # a tile that nothing writes is one of zeros in PTO


@writes("tile.move")
def _move(w: Writer, call: Call, given: Given) -> Tile:
    """Return the tile: whatever reads it moves it to where it reads."""
    return in_vec(w, given["tile"]) if given["target_memory"] is MemorySpace.Vec else given["tile"]


@writes("tile.transpose")
def _transpose(w: Writer, call: Call, given: Given) -> Tile:
    rank = len(matrix(call)[1].shape)
    if given["axis1"] % rank == given["axis2"] % rank:
        return in_vec(w, given["x"])  # an axis that changes places with itself
    return (_turned if _are_last(call, given) else _swapped)(w, call, given)


def _are_last(call: Call, given: Given) -> bool:
    """Return whether it is rows and columns that change places."""
    rank = len(matrix(call)[1].shape)
    return {given[name] % rank for name in ("axis1", "axis2")} == {rank - 1, rank - 2}


@writes("tile.transpose_view")
def _transpose_view(w: Writer, call: Call, given: Given) -> Tile:
    return _turned(w, call, given)


def _turned_reach(w: Writer, call: Call, given: Given) -> Pair:
    rows, columns = given["tile" if "tile" in given else "x"].valid
    return columns, rows


@partial(each_matrix, reach=_turned_reach)
def _turned(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["tile" if "tile" in given else "x"])
    return w.op("ttrans", [x], result(w, call, (x.valid[1], x.valid[0])))


def _swapped(w: Writer, call: Call, given: Given) -> Tile:
    """Write each element to where it is once two of many axes are swapped."""
    x, source = in_vec(w, given["tile" if "tile" in given else "x"]), call.args[0].type
    assert isinstance(source, TileType)
    first, second = (given.get(name, last) % len(source.shape) for name, last in (("axis1", -2), ("axis2", -1)))
    extents = swapped(extents_along(w, x, source), first, second)
    return rearranged(w, call, x, extents, lambda places: swapped(places, first, second))


@partial(each_matrix, reach=_turned_reach)
def _turned_alone(w: Writer, call: Call, given: Given) -> Tile:
    """Write a matrix of elements that no machine turns, as far as it is valid."""
    x = in_vec(w, given["tile" if "tile" in given else "x"])
    out = result(w, call, (x.valid[1], x.valid[0]))
    with w.counted(x.valid[0], "row") as row, w.counted(x.valid[1], "column") as column:
        set_at(w, out, column, row, element_at(w, x, row, column))
    return out


def _transposed_alone(w: Writer, call: Call, given: Given) -> Tile:
    return (_turned_alone if _are_last(call, given) else _swapped)(w, call, given)


ALONE.update({"tile.transpose": _transposed_alone, "tile.transpose_view": _turned_alone})


@writes("tile.set_validshape")
def _set_valid(w: Writer, call: Call, given: Given) -> Tile:
    x, type_ = in_vec(w, given["x"]), call.args[0].type
    assert isinstance(type_, TileType)
    rows, columns = (converted(w, given[name], INDEX) for name in ("valid_rows", "valid_cols"))
    extents = [*extents_along(w, x, type_)[:-2], rows, columns]
    made = all_moved(w, x, result(w, call, matrix_of(w, type_.shape, extents)))
    if x.name in w.ascending:
        w.ascending.add(made.name)
    return as_far_as(made, matrix(call)[1], extents)


@writes("tile.reinterpret_view")
def _reinterpret(w: Writer, call: Call, given: Given) -> Tile:
    """Write bytes as other elements: where rows begin where the others did, where all lie side by side, or packed."""
    x, (shape, type_), source = in_vec(w, given["data"]), matrix(call), call.args[0].type
    assert isinstance(source, TileType)
    have, want, axis = x.dtype.get_byte(), type_.dtype.get_byte(), adjacent_axis(source)
    extents = [w.constant(extent) for extent in type_.shape]
    if not is_fully_valid(type_):
        extents = extents_along(w, x, source)
        extents[axis] = computed(w, "floordiv", [w.product(extents[axis], w.constant(have)), w.constant(want)], INDEX)
    out = as_far_as(result(w, call, matrix_of(w, type_.shape, extents)), type_, extents)
    is_same = x.shape[0] == shape[0] and x.is_column == out.is_column and (have == want or not x.is_column)
    if is_same or (x.room == x.shape and out.room == shape):
        room = (x.room[0], x.room[1] * have // want) if is_same else shape
        return w.op("tmov", [seen_as(w, x, type_.dtype, shape, room, out.valid)], out)
    line, other = (1, prod(x.shape)), (1, prod(shape))
    packed = one_by_one(w, x, w.tile("packed", x.dtype, line, whole_of(w, line)))
    return one_by_one(w, seen_as(w, packed, type_.dtype, other, (1, packed.room[1] * have // want)), out)


@writes("tile.concat")
def _concat(w: Writer, call: Call, given: Given) -> Tile:
    a, b = in_vec(w, given["src0"]), in_vec(w, given["src1"])
    zero, start = w.constant(0), w.constant(a.shape[1])
    whole = result(w, call, (a.valid[0], computed(w, "add", [start, b.valid[1]], INDEX)))
    return put_over(w, put_over(w, whole, a, (zero, zero)), b, (zero, start))


@writes("tile.reshape")
def _reshape(w: Writer, call: Call, given: Given) -> Tile:
    x: Tile = in_vec(w, given["x"])
    shape, type_ = matrix(call)
    loses_rows = len(type_.shape) == 1 and x.valid[0].known != 1  # of a row, only columns can be valid in part
    if shape == x.shape and not loses_rows:
        return x
    if shape == x.shape[::-1] and 1 in shape:
        (high, wide), (rows, cols) = x.room, x.valid
        line = seen_as(w, x, x.dtype, shape, (wide, high) if x.is_column else (wide, 1), (cols, rows))
        return w.op("tmov", [line], result(w, call, line.valid))
    refuse(call, None in sizes_of(type_), "of a tile of which only the run knows how much is valid")
    out, is_whole = result(w, call, (w.constant(shape[0]), w.constant(shape[1]))), is_fully_valid(type_)
    if x.room != x.shape or out.room != shape or not is_whole:  # what lies between rows would become elements
        return one_by_one(w, x, out)
    return w.op("tmov", [seen_as(w, x, x.dtype, shape, shape, out.valid)], out)


@writes("tile.fillpad", "tile.fillpad_expand", "tile.fillpad_inplace")
def _fillpad(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["tile" if call.op.spec.name == "fillpad_inplace" else "x"])
    shape, type_ = matrix(call)
    pad, source = padding(given["pad_value"], type_.dtype), call.args[0].type
    assert isinstance(source, TileType)
    if x.axes or source.shape[1:-1] != type_.shape[1:-1]:
        tile = filled_around(w, "fillpad", type_.dtype, shape, pad, whole_of(w, shape))
        with w.all_counted(extents_along(w, x, source), "at") as at:
            come, go = (row_of(w, at, each) for each in (source.shape, type_.shape))
            set_at(w, tile, go, at[-1], element_at(w, x, come, at[-1]))
        return tile
    tile = filled_around(w, "fillpad", type_.dtype, shape, pad, x.valid)
    if shape != x.shape:
        zero = w.constant(0)
        put_over(w, tile, x, (zero, zero))
    else:
        w.op("tmov", [x], replace(tile, valid=w.unknown(x.valid)))
    w.resize(tile, tile.valid)
    return tile


# counting


@writes("tile.ci", "tile.arange")
def _count(w: Writer, call: Call, given: Given) -> Tile:
    shape, type_ = matrix(call)
    start: Number = given["start"]
    row = _row(w, type_.dtype, shape[1], start, given["descending"])
    made = row if shape[0] == 1 else w.op("tcolexpand", [row], result(w, call, whole_of(w, shape)))
    if not given["descending"] and isinstance(start.known, int) and 0 <= start.known < _MOST - shape[1]:
        w.ascending.add(made.name)
    return made


_MOST = 1 << 31
"""Numbers below this count up without wrapping around."""


@writes("tile.iota")
def _iota(w: Writer, call: Call, given: Given) -> Tile:
    shape, type_ = matrix(call)
    axis: int = given["axis"] % len(type_.shape)
    along = axis == len(type_.shape) - 1
    if not along and prod(type_.shape[:-1]) != type_.shape[axis]:
        return _counted_alone(w, call, given)
    row = _row(w, type_.dtype, shape[1 if along else 0], w.constant(0), False)
    for word, number, nothing in (("tmuls", given["step"], 1), ("tadds", given["start"], 0)):
        if number.known != nothing:
            row = w.op(
                word, [row, converted(w, number, type_.dtype)], w.tile("iota", type_.dtype, row.shape, row.valid)
            )
    if along:
        return row if shape[0] == 1 else w.op("tcolexpand", [row], result(w, call, whole_of(w, shape)))
    column = _stood_up(w, row)
    return column if shape[1] == 1 else w.op("trowexpand", [column], result(w, call, whole_of(w, shape)))


def _counted_alone(w: Writer, call: Call, given: Given) -> Tile:
    """Write numbers that count along any axis, of elements of any type, one after the other."""
    shape, type_ = matrix(call)
    axis: int = given["axis"] % len(type_.shape)
    out, apart = result(w, call, whole_of(w, shape)), w.constant(prod(type_.shape[axis + 1 : -1]))
    with w.counted(w.constant(shape[0]), "row") as row, w.counted(w.constant(shape[1]), "column") as column:
        above = computed(w, "floordiv", [row, apart], INDEX)
        is_last = axis == len(type_.shape) - 1
        place = column if is_last else computed(w, "mod", [above, w.constant(type_.shape[axis])], INDEX)
        number = converted(w, place, type_.dtype)
        for word, operand, nothing in (("mul", given["step"], 1), ("add", given["start"], 0)):
            if operand.known != nothing:
                number = computed(w, word, [number, converted(w, operand, type_.dtype)], type_.dtype)
        set_at(w, out, row, column, number)
    return out


ALONE["tile.iota"] = _counted_alone


def _stood_up(w: Writer, row: Tile) -> Tile:
    """Write a row as a column of the same bytes."""
    return seen_as(w, row, row.dtype, (row.shape[1], 1), (row.room[1], 1))


def _row(w: Writer, dtype: DataType, count: int, start: Any, is_down: bool) -> Tile:
    """Write a row of numbers that count from one on."""
    counted = dtype if dtype in (INT16, INT32) else INT32
    tile = w.tile("count", counted, (1, count), whole_of(w, (1, count)))
    first = converted(w, start, counted)
    w.op("tci", [first], tile, "{descending = true}" if is_down else "")
    if counted == dtype:
        return tile
    room = 1, max(tile.room[1], room_of(dtype, (1, count), MemorySpace.Vec)[1])
    words = "{rmode = #pto<round_mode RINT>, sat_mode = #pto<saturation_mode OFF>}"
    return w.op("tcvt", [with_room(w, tile, room)], w.tile("count", dtype, (1, count), tile.valid, room=room), words)
