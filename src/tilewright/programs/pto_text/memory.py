"""Memory: windows of tensors, loaded and stored, and tensors that a program makes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType, MemorySpace, TensorLayout
from tilewright.core.expr import Call, Expr
from tilewright.core.types import TensorType, TileType, is_fully_valid
from tilewright.dtypes import FP64, INDEX, INT64, DataType
from tilewright.ops.load import padding
from tilewright.programs.pto_text.cells import cell_of, set_cell
from tilewright.programs.pto_text.conversions import in_type
from tilewright.programs.pto_text.elements import element_at, one_by_one, set_at
from tilewright.programs.pto_text.masked import admitted
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tensor, Tile, Value, element, kept
from tilewright.programs.pto_text.words import (
    Given,
    each_place,
    expanded,
    filled_around,
    flat,
    in_vec,
    is_ragged,
    least,
    matrix,
    matrix_of,
    part_of,
    put_over,
    refuse,
    result,
    row_of,
    sizes_of,
    within,
    writes,
)
from tilewright.programs.pto_text.writer import CUBE, Writer


@writes("tile.load")
def _load(w: Writer, call: Call, given: Given) -> Tile:
    source: Tensor = given["tensor"]
    if given["mask"] is not None:
        return _load_where(w, call, given, source)
    if given["pad"] is not None:
        return _padded(w, call, given, source)
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, given["offsets"], strict=True)]
    (_, type_), tensor = matrix(call), call.args[0].type
    cut = within if given["clamp"] else least
    sizes = [
        w.constant(valid) if isinstance(valid, int) else cut(w, computed(w, "sub", [extent, at], INDEX), size)
        for extent, at, size, valid in zip(
            source.valid, given["offsets"], given["valid_shape"] or given["shapes"], type_.valid, strict=True
        )
    ]
    part = matrix_of(w, type_.shape, sizes)
    if isinstance(tensor, TensorType) and tensor.layout.is_permuted:
        return _in_order(w, call, tensor.layout, source, places, result(w, call, part))
    if w.core == CUBE:
        tile = w.tile("load", type_.dtype, flat(type_.shape), part, MemorySpace.Mat)
    else:
        tile = result(w, call, part)
    if is_ragged(type_.shape, sizes_of(type_)):
        tile = replace(tile, axes=tuple(sizes[:-1]))
        with each_place(w, tile, type_.shape) as (inner, at):
            set_at(w, tile, *at, cell_of(w, _from(w, source, given["offsets"]), inner))
        return tile
    _transfer(w, tile, source, places, sizes)
    return tile


def _in_order(w: Writer, call: Call, layout: TensorLayout, source: Tensor, at: Sequence[Number], out: Tile) -> Tile:
    """Write exponents in the order of their rows and columns, of which 16 by 2 lie together in memory."""
    refuse(call, not source.is_whole, "of a window of exponents")
    is_left = layout is TensorLayout.MX_A_ZZ
    flat = replace(source, shape=(source.shape[0],), strides=(w.constant(1),), offsets=(w.constant(0),))
    pairs = computed(w, "floordiv", [source.shape[1 if is_left else 0], w.constant(2)], INDEX)

    def does(name: str, a: Number, b: Number | int) -> Number:
        return computed(w, name, [a, w.constant(b) if isinstance(b, int) else b], INDEX)

    with w.counted(out.valid[0], "row") as row, w.counted(out.valid[1], "column") as column:
        places = does("add", at[0], row), does("add", at[1], column)
        long, short = places if is_left else places[::-1]
        box = does("add", does("mul", does("floordiv", long, 16), pairs), does("floordiv", short, 2))
        line = does("add", does("mul", box, 16), does("mod", long, 16))
        place = does("add", does("mul", line, 2), does("mod", short, 2))
        set_at(w, out, row, column, cell_of(w, flat, [place]))
    return out


def _load_where(w: Writer, call: Call, given: Given, source: Tensor) -> Tile:
    """Write a tile of a number, and over it the elements of a tensor that a mask admits."""
    _, type_ = matrix(call)
    sizes = [w.constant(extent) for extent in type_.shape]
    out = result(w, call, matrix_of(w, type_.shape, sizes))
    pad = 0 if given["pad"] is None else given["pad"]
    expanded(w, w.constant(padding(pad, type_.dtype), out.dtype), out)
    window = _from(w, source, given["offsets"])
    with admitted(w, (given["mask"], arguments(call)["mask"]), type_.shape, sizes) as (places, at):
        set_at(w, out, *at, cell_of(w, window, places))
    return out


def _from(w: Writer, tensor: Tensor, offsets: Sequence[Number]) -> Tensor:
    """Return a window that begins elsewhere."""
    starts = (computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, offsets, strict=True))
    return replace(tensor, offsets=(*starts,))


def _padded(w: Writer, call: Call, given: Given, source: Tensor) -> Tile:
    """Write a tile of a number, and what is there of a tensor over it, from where it begins."""
    shape, type_ = matrix(call)
    starts: list[Number] = given["offsets"]
    zero, wanted = w.constant(0), given["valid_shape"] or given["shapes"]
    firsts = [at if at.is_natural else computed(w, "max", [at, zero], INDEX) for at in starts]
    ends = [
        least(w, computed(w, "add", [at, size], INDEX), extent)
        for at, size, extent in zip(starts, wanted, source.valid, strict=True)
    ]
    pairs = zip(ends, firsts, strict=True)
    sizes = [computed(w, "max", [computed(w, "sub", [end, first], INDEX), zero], INDEX) for end, first in pairs]
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, firsts, strict=True)]
    part, pad = matrix_of(w, type_.shape, sizes), padding(given["pad"], type_.dtype)
    if is_ragged(type_.shape, [size.known if isinstance(size.known, int) else None for size in sizes]):
        return _padded_cells(w, call, source, starts, (sizes, pad))
    if all(at.is_natural for at in starts):
        tile = filled_around(w, "load", type_.dtype, shape, pad, part)
        _transfer(w, replace(tile, valid=w.unknown(part)), source, places, sizes)
        w.resize(tile, tile.valid)
        return tile
    loaded = w.tile("there", type_.dtype, shape, w.unknown(part))
    _transfer(w, loaded, source, places, sizes)
    whole = expanded(w, w.constant(pad, kept(type_.dtype)), result(w, call, part))
    shifts = [
        least(w, computed(w, "sub", [first, at], INDEX), size)
        for first, at, size in zip(firsts, starts, wanted, strict=True)
    ]
    row, column = row_of(w, shifts, type_.shape).name, shifts[-1].name
    types = f"{loaded.type}, index, index"
    w.line(f"pto.tinsert ins({loaded.name}, {row}, {column} : {types}) outs({whole.name} : {whole.type})")
    return whole


def _padded_cells(
    w: Writer, call: Call, source: Tensor, starts: Sequence[Number], found: tuple[Sequence[Number], float]
) -> Tile:
    """Write a tile of a number, and over it, one after the other, the elements that are there."""
    (shape, type_), (sizes, pad) = matrix(call), found
    out = filled_around(w, "load", type_.dtype, shape, pad, (w.constant(shape[0]), w.constant(shape[1])))
    zero = w.constant(0)
    shifts = [
        zero if at.is_natural else computed(w, "max", [computed(w, "sub", [zero, at], INDEX), zero], INDEX)
        for at in starts
    ]
    there = replace(out, axes=tuple(sizes[:-1]), valid=(out.valid[0], sizes[-1]))
    with each_place(w, there, type_.shape) as (inner, _):
        places = [computed(w, "add", [a, b], INDEX) for a, b in zip(inner, shifts, strict=True)]
        number = cell_of(w, _from(w, source, starts), places)
        set_at(w, out, row_of(w, places, type_.shape), places[-1], number)
    return out


def _transfer(w: Writer, tile: Tile, source: Tensor, places: Sequence[Number], sizes: Sequence[Number]) -> None:
    if any(size.known == 0 for size in sizes):
        return
    name, kind = w.window(source, places, sizes)
    tile = w.movable(tile)
    w.line(f"pto.tload ins({name} : {kind}) outs({tile.name} : {tile.type})")


@writes("tile.gather_row")
def _gather_row(w: Writer, call: Call, given: Given) -> Tile:
    """Write a window of a tensor over a part of a tile."""
    source: Tensor = given["src"]
    shape = [int(extent.known or 0) for extent in given["shapes"]]
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, given["src_offset"], strict=True)]
    rows, columns = given["valid_shape"] or given["shapes"]
    valid = rows, columns
    window = w.tile("window", source.dtype, (shape[0], shape[1]), valid)
    _transfer(w, window, source, places, valid)
    if given["transpose"]:
        turned = w.tile("turned", source.dtype, (shape[1], shape[0]), (valid[1], valid[0]))
        window = w.op("ttrans", [window], turned)
    dst = in_vec(w, given["dst"])
    whole = w.op("tmov", [dst], result(w, call, dst.valid))
    return put_over(w, whole, window, (given["dst_offset"][0], given["dst_offset"][1]))


@writes("tile.store", "tensor.assemble")
def _store(w: Writer, call: Call, given: Given) -> Value | None:
    is_store = call.op.name == "tile.store"
    key = "tile" if is_store else "source"
    tensor: Tensor = given["output_tensor" if is_store else "target"]
    atomic = given.get("atomic", AtomicType.None_)
    refuse(call, atomic not in (AtomicType.None_, AtomicType.Add), f"that is atomic by {atomic}")
    if isinstance(given[key], Tensor):
        return _copied(w, given[key], tensor, given["offset"])
    type_, tile = _type_of(call, key), given[key]
    tile_of: Tile = tile
    if w.core != CUBE or tile.memory is not MemorySpace.Acc:
        tile = in_type(w, in_vec(w, tile), tensor.dtype)
    shape = type_.shape if given.get("shapes") is None else tuple(int(each.known or 0) for each in given["shapes"])
    if shape != type_.shape:
        refuse(
            call, not is_fully_valid(type_) or 0 in shape, "under a shape of its own, of a tile that is valid in part"
        )
        whole = w.constant(flat(shape)[0]), w.constant(flat(shape)[1])
        tile = one_by_one(w, tile, w.tile("reshaped", tile.dtype, flat(shape), whole))
    refuse(call, len(shape) > len(tensor.shape), "of a tile with more axes than its tensor")
    offsets = given["offsets" if is_store else "offset"]
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, offsets, strict=True)]
    extents = (1,) * (len(tensor.shape) - len(shape)) + shape
    refuse(call, atomic is AtomicType.Add and tile.dtype == FP64, "that adds doubles", "let the turns add to fp32")
    inner = [*tile_of.axes, tile.valid[1]] if tile_of.axes else _sizes(w, shape, tile.valid)
    if given.get("mask") is not None:
        outer = [w.constant(0)] * (len(tensor.shape) - len(shape))
        window, mask = _from(w, tensor, offsets), (given["mask"], arguments(call)["mask"])
        with admitted(w, mask, shape, inner) as (cell, at):
            set_cell(w, window, [*outer, *cell], element_at(w, tile, *at))
        return tensor
    if tile_of.axes:
        _put_rows(w, (tile, shape, inner), tensor, places, atomic)
    else:
        _put(w, tile, tensor, (places, _sizes(w, extents, tile.valid)), atomic)
    return tensor


def _put_rows(
    w: Writer,
    part: tuple[Tile, Sequence[int], Sequence[Number]],
    tensor: Tensor,
    places: Sequence[Number],
    atomic: AtomicType,
) -> None:
    """Write the rows of a tile that is ragged along many axes to a tensor, one after the other."""
    (tile, shape, sizes), zero, one = part, w.constant(0), w.constant(1)
    valid, last = (one, sizes[-1]), shape[-1]
    with w.all_counted(sizes[:-1], "at") as rows:
        row = part_of(w, tile, (row_of(w, [*rows, zero], shape), zero), (1, last), valid)
        alone = w.op("tmov", [row], w.tile("row", tile.dtype, (1, last), valid))
        more = [zero] * (len(places) - len(shape))
        at = [computed(w, "add", [a, b], INDEX) for a, b in zip(places, [*more, *rows, zero], strict=True)]
        _put(w, alone, tensor, (at, [one] * (len(places) - 1) + [sizes[-1]]), atomic)


def _put(
    w: Writer, tile: Tile, tensor: Tensor, window: tuple[Sequence[Number], Sequence[Number]], atomic: AtomicType
) -> None:
    """Write a tile to a window of a tensor, from some place on and of some sizes, if there is any of it."""
    if any(size.known == 0 for size in window[1]):
        return
    name, kind = w.window(tensor, *window)
    tile = w.movable(tile)
    adds = " {atomicType = #pto<atomic_type atomic_add>}" if atomic is AtomicType.Add else ""
    w.line(f"pto.tstore ins({tile.name} : {tile.type}) outs({name} : {kind}){adds}")


def _copied(w: Writer, source: Tensor, target: Tensor, offset: Sequence[Number]) -> Tensor:
    """Write the copy of a window of one tensor to another, a row at a time, or an element where rows are not known."""
    cols = source.valid[-1]
    window = _from(w, target, offset)
    if not isinstance(cols.known, int) or not len(source.shape) <= 2 <= len(target.shape):
        outer = [w.constant(0)] * (len(target.shape) - len(source.shape))
        with ExitStack() as loops:
            places = [loops.enter_context(w.counted(extent, "at")) for extent in source.valid]
            set_cell(w, window, [*outer, *places], cell_of(w, source, places))
        return target
    row, rows = Number(w.name("row"), INDEX), (w.constant(1), *source.valid)[-2]
    with w.block(f"scf.for {row.name} = {w.constant(0).name} to {rows.name} step {w.constant(1).name}"):
        tile = w.movable(w.tile("copy", source.dtype, (1, cols.known), (w.constant(1), cols)))
        come, go = (
            w.window(tensor, _at_row(w, places, row), [*[w.constant(1)] * (len(places) - 1), cols])
            for tensor, places in ((source, source.offsets), (target, window.offsets))
        )
        w.line(f"pto.tload ins({come[0]} : {come[1]}) outs({tile.name} : {tile.type})")
        w.line(f"pto.tstore ins({tile.name} : {tile.type}) outs({go[0]} : {go[1]})")
    return target


def _at_row(w: Writer, places: Sequence[Number], row: Number) -> list[Number]:
    moved = [computed(w, "add", [first, row], INDEX) for first in places[-2:-1]]
    return [*places[:-2], *moved, places[-1]]


def _type_of(call: Call, key: str) -> TileType:
    given: Any = arguments(call)[key]
    assert isinstance(given, Expr) and isinstance(given.type, TileType)
    return given.type


def _sizes(w: Writer, shape: Sequence[int], valid: tuple[Number, Number]) -> list[Number]:
    """Return how many elements along each axis a matrix is, of which only the first axis above one may be cut."""
    rows, cols = valid
    found = [w.constant(extent) for extent in shape[:-1]]
    first = next((axis for axis, extent in enumerate(shape[:-1]) if extent > 1), len(shape) - 2)
    if first >= 0:
        inner = prod(shape[first + 1 : -1])
        found[first] = rows if inner == 1 else computed(w, "floordiv", [rows, w.constant(inner)], INDEX)
    return [*found, cols]


@writes("tensor.create", "tensor.create_l1")
def _create(w: Writer, call: Call, given: Given) -> Tensor:
    return created(w, given["dtype"], given["shape"], given.get("init_value"))


def created(w: Writer, dtype: DataType, shape: Sequence[Number], value: Any) -> Tensor:
    """Write a new tensor, all of which is some value where that is given."""
    return filled_with(w, room_for(w, dtype, shape), value)


def room_for(w: Writer, dtype: DataType, shape: Sequence[Number]) -> Tensor:
    """Write a view of room that the caller brings: as much for each block, where blocks share the turns."""
    kind = f"!pto.ptr<{element(kept(dtype))}, gm>"
    room = w.room(kind)
    if w.share is not None:
        size = w.share
        for extent in shape:
            size = computed(w, "mul", [size, extent], INDEX)
        room, whole = w.name("own"), room
        w.line(f"{room} = pto.addptr {whole}, {size.name} : {kind} -> {kind}")
    return w.view("made", dtype, room, shape)


def filled_with(w: Writer, tensor: Tensor, value: Any) -> Tensor:
    """Write a value to all of a tensor, where one is given; return the tensor."""
    if value is not None:
        _fill(w, tensor, value)
    return tensor


@writes("tensor.full")
def _full(w: Writer, call: Call, given: Given) -> Tensor:
    return created(w, given["dtype"], given["shape"], given["value"])


def _fill(w: Writer, tensor: Tensor, value: Any) -> None:
    """Write a number to all elements of a tensor, a row of some at a time."""
    count = w.constant(1)
    for extent in tensor.shape:
        count = computed(w, "mul", [count, extent], INDEX)
    row = w.view("flat", tensor.dtype, tensor.pointer, (count,))
    number = value if isinstance(value, Number) else w.constant(value, tensor.dtype)
    index, size = Number(w.name("i"), INDEX), w.constant(_AT_ONCE)
    with w.block(f"scf.for {index.name} = {w.constant(0).name} to {count.name} step {size.name}"):
        left = least(w, computed(w, "sub", [count, index], INDEX), size)
        tile = w.tile("fill", tensor.dtype, (1, _AT_ONCE), (w.constant(1), left))
        expanded(w, converted(w, number, tensor.dtype), tile)
        name, kind = w.window(row, [index], [left])
        tile = w.movable(tile)
        w.line(f"pto.tstore ins({tile.name} : {tile.type}) outs({name} : {kind})")


_AT_ONCE = 256


@writes("tile.get_block_idx", "tensor.get_block_idx")
def _block_index(w: Writer, call: Call, given: Given) -> Number:
    return w.turn


@writes("tile.get_block_num", "tensor.get_block_num")
def _block_count(w: Writer, call: Call, given: Given) -> Number:
    return w.turns


@writes("tile.get_subblock_idx", "tensor.get_subblock_idx")
def _lane(w: Writer, call: Call, given: Given) -> Number:
    if w.lanes == 1 and w.core:
        return w.constant(0)
    name = w.name("lane")
    w.line(f"{name} = pto.get_subblock_idx")
    return replace(converted(w, Number(name, INT64), INDEX), counts=True)
