"""Memory: tensors and their windows: loads, stores, single elements, and tensors that a program makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call, Expr
from tilewright.core.types import ScalarType, TileType, is_fully_valid
from tilewright.dtypes import BOOL, INDEX, DataType
from tilewright.ops.load import padding
from tilewright.programs.pto_text.elements import one_by_one
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tensor, Tile, Value, element, kept
from tilewright.programs.pto_text.words import (
    Given,
    expanded,
    filled_around,
    flat,
    in_vec,
    least,
    matrix,
    matrix_of,
    put_over,
    refuse,
    result,
    row_of,
    within,
    writes,
)
from tilewright.programs.pto_text.writer import Writer

NARROWED = "let the tile be valid in part (`pl.set_validshape`), or select before storing"


@writes("tile.load")
def _load(w: Writer, call: Call, given: Given) -> Tile:
    source: Tensor = given["tensor"]
    refuse(call, given["mask"] is not None, "with a mask", NARROWED)
    if given["pad"] is not None:
        return _padded(w, call, given, source)
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, given["offsets"], strict=True)]
    _, type_ = matrix(call)
    cut = within if given["clamp"] else least
    sizes = [
        w.constant(valid) if isinstance(valid, int) else cut(w, computed(w, "sub", [extent, at], INDEX), size)
        for extent, at, size, valid in zip(
            source.shape, given["offsets"], given["valid_shape"] or given["shapes"], type_.valid, strict=True
        )
    ]
    tile = result(w, call, matrix_of(w, type_.shape, sizes))
    _transfer(w, tile, source, places, sizes)
    return tile


def _padded(w: Writer, call: Call, given: Given, source: Tensor) -> Tile:
    """Write a tile of a number, and what is there of a tensor over it, from where it begins."""
    shape, type_ = matrix(call)
    starts: list[Number] = given["offsets"]
    zero, wanted = w.constant(0), given["valid_shape"] or given["shapes"]
    firsts = [at if at.is_natural else computed(w, "max", [at, zero], INDEX) for at in starts]
    ends = [
        least(w, computed(w, "add", [at, size], INDEX), extent)
        for at, size, extent in zip(starts, wanted, source.shape, strict=True)
    ]
    pairs = zip(ends, firsts, strict=True)
    sizes = [computed(w, "max", [computed(w, "sub", [end, first], INDEX), zero], INDEX) for end, first in pairs]
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, firsts, strict=True)]
    part, pad = matrix_of(w, type_.shape, sizes), padding(given["pad"], type_.dtype)
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


def _transfer(w: Writer, tile: Tile, source: Tensor, places: Sequence[Number], sizes: Sequence[Number]) -> None:
    name, kind = w.window(source, places, sizes)
    tile = w.movable(tile)
    w.line(f"pto.tload ins({name} : {kind}) outs({tile.name} : {tile.type})")


@writes("tile.gather_row")
def _gather_row(w: Writer, call: Call, given: Given) -> Tile:
    """Write a window of a tensor over a part of a tile."""
    source: Tensor = given["src"]
    shape = [int(extent.known or 0) for extent in given["shapes"]]
    is_plain = given["valid_shape"] is None and len(shape) == 2 == len(source.shape)
    refuse(call, not is_plain, "with a valid shape, or of other than matrices")
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, given["src_offset"], strict=True)]
    valid = w.constant(shape[0]), w.constant(shape[1])
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
    refuse(call, given.get("mask") is not None, "with a mask", NARROWED)
    if isinstance(given[key], Tensor):
        return _copied(w, call, given[key], tensor, given["offset"])
    type_, tile = _type_of(call, key), in_vec(w, given[key])
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
    name, kind = w.window(tensor, places, _sizes(w, extents, tile.valid))
    tile = w.movable(tile)
    adds = " {atomicType = #pto<atomic_type atomic_add>}" if atomic is AtomicType.Add else ""
    w.line(f"pto.tstore ins({tile.name} : {tile.type}) outs({name} : {kind}){adds}")
    return tensor


def _copied(w: Writer, call: Call, source: Tensor, target: Tensor, offset: Sequence[Number]) -> Tensor:
    """Write the copy of a window of one tensor to another, a row at a time."""
    cols = source.shape[-1]
    is_matrix = len(source.shape) <= 2 <= len(target.shape) and source.dtype == target.dtype
    refuse(call, not is_matrix or not isinstance(cols.known, int), "of tensors that are no matrices of known columns")
    row, rows = Number(w.name("row"), INDEX), (w.constant(1), *source.shape)[-2]
    starts = [computed(w, "add", [a, b], INDEX) for a, b in zip(target.offsets, offset, strict=True)]
    with w.block(f"scf.for {row.name} = {w.constant(0).name} to {rows.name} step {w.constant(1).name}"):
        tile = w.movable(w.tile("copy", source.dtype, (1, int(cols.known or 0)), (w.constant(1), cols)))
        come, go = (
            w.window(tensor, _at_row(w, places, row), [*[w.constant(1)] * (len(places) - 1), cols])
            for tensor, places in ((source, source.offsets), (target, starts))
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
    first = next((axis for axis, extent in enumerate(shape[:-1]) if extent > 1), None)
    if first is not None:
        inner = prod(shape[first + 1 : -1])
        found[first] = rows if inner == 1 else computed(w, "floordiv", [rows, w.constant(inner)], INDEX)
    return [*found, cols]


@writes("tensor.write")
def _write(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    number = converted(w, given["value"], tensor.dtype)
    place, kind = _element(w, tensor, given["indices"]), element(tensor.dtype)
    w.line(f"pto.store_scalar {number.name}, {place} : !pto.ptr<{kind}, gm>, {kind}")
    return tensor


@writes("tensor.read")
def _read(w: Writer, call: Call, given: Given) -> Number:
    tensor: Tensor = given["x"]
    kind, name = element(tensor.dtype), w.name("element")
    w.line(f"{name} = pto.load_scalar {_element(w, tensor, given['indices'])} : !pto.ptr<{kind}, gm> -> {kind}")
    read = Number(name, tensor.dtype)
    return converted(w, read, BOOL) if call.type == ScalarType(BOOL) else read


def _element(w: Writer, tensor: Tensor, indices: Sequence[Number]) -> str:
    """Write where an element of a tensor lies; return its pointer and offset."""
    starts = tuple(computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, indices, strict=True))
    return f"{tensor.pointer}[{_before(w, replace(tensor, offsets=starts)).name}]"


@writes("tensor.dim")
def _dim(w: Writer, call: Call, given: Given) -> Number:
    tensor: Tensor = given["tensor"]
    axis: int = given["axis"]
    return tensor.shape[axis]


@writes("tensor.slice")
def _slice(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    refuse(call, len(given["offset"]) != len(tensor.shape), "of fewer axes")
    refuse(call, given["valid_shape"] is not None, "with a valid shape of its own")
    offsets = tuple(computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, given["offset"], strict=True))
    left = [computed(w, "sub", [n, at], INDEX) for n, at in zip(tensor.shape, given["offset"], strict=True)]
    shape = tuple(least(w, rest, size) for rest, size in zip(left, given["shape"], strict=True))
    window = replace(tensor, shape=shape, offsets=offsets, is_whole=False)
    return _without(w, window, given["drop_dims"]) if given["drop_dims"] else window


@writes("tensor.transpose")
def _transposed(w: Writer, call: Call, given: Given) -> Tensor:
    """Write the view of a tensor with two axes swapped."""
    tensor: Tensor = given["x"]
    order = [*range(len(tensor.shape))]
    first, second = given["axis1"] % len(order), given["axis2"] % len(order)
    order[first], order[second] = order[second], order[first]
    shape, strides = ([each[axis] for axis in order] for each in (tensor.shape, tensor.strides))
    return w.view("turned", tensor.dtype, _start(w, tensor), shape, strides)


@writes("tensor.strided")
def _strided(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    steps = [w.constant(step) for step in given["steps"]]
    last = [
        computed(w, "add", [n, w.constant(step - 1)], INDEX)
        for n, step in zip(tensor.shape, given["steps"], strict=True)
    ]
    shape = [computed(w, "floordiv", [n, step], INDEX) for n, step in zip(last, steps, strict=True)]
    strides = [computed(w, "mul", [by, step], INDEX) for by, step in zip(tensor.strides, steps, strict=True)]
    return w.view("part", tensor.dtype, _start(w, tensor), shape, strides)


def _without(w: Writer, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Write the view of a window without some of its axes."""
    kept = [axis for axis in range(len(tensor.shape)) if axis not in {each % len(tensor.shape) for each in axes}]
    rest = ([each[axis] for axis in kept] for each in (tensor.shape, tensor.strides))
    return w.view("part", tensor.dtype, _start(w, tensor), *rest)


def _start(w: Writer, tensor: Tensor) -> str:
    """Write a pointer to the first element of a window; return its name."""
    kind, pointer = f"!pto.ptr<{element(tensor.dtype)}, gm>", w.name("start")
    w.line(f"{pointer} = pto.addptr {tensor.pointer}, {_before(w, tensor).name} : {kind} -> {kind}")
    return pointer


def _before(w: Writer, tensor: Tensor) -> Number:
    """Write how many elements lie before the first one of a window."""
    before = w.constant(0)
    for first, stride in zip(tensor.offsets, tensor.strides, strict=True):
        before = computed(w, "add", [before, computed(w, "mul", [first, stride], INDEX)], INDEX)
    return before


@writes("tensor.reshape")
def _reshape(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    refuse(call, not tensor.is_whole, "of a window")
    refuse(call, any(extent.known == -1 for extent in given["shape"]), "with an extent to be found")
    return w.view(tensor.view[1:], tensor.dtype, tensor.pointer, given["shape"])


@writes("tensor.create")
def _create(w: Writer, call: Call, given: Given) -> Tensor:
    return _created(w, given["dtype"], given["shape"], given["init_value"])


def _created(w: Writer, dtype: DataType, shape: Sequence[Number], value: Any) -> Tensor:
    """Write a view of room that the caller brings: as much for each block, where blocks share the turns."""
    kind = f"!pto.ptr<{element(kept(dtype))}, gm>"
    room = w.room(kind)
    if w.share is not None:
        size = w.share
        for extent in shape:
            size = computed(w, "mul", [size, extent], INDEX)
        room, whole = w.name("own"), room
        w.line(f"{room} = pto.addptr {whole}, {size.name} : {kind} -> {kind}")
    tensor = w.view("made", dtype, room, shape)
    if value is not None:
        _fill(w, tensor, value)
    return tensor


@writes("tensor.full")
def _full(w: Writer, call: Call, given: Given) -> Tensor:
    return _created(w, given["dtype"], given["shape"], given["value"])


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
        w.line(f"pto.tstore ins({tile.name} : {tile.type}) outs({name} : {kind})")


_AT_ONCE = 256


@writes("tile.get_block_idx", "tensor.get_block_idx")
def _block_index(w: Writer, call: Call, given: Given) -> Number:
    return w.turn


@writes("tile.get_block_num", "tensor.get_block_num")
def _block_count(w: Writer, call: Call, given: Given) -> Number:
    return w.turns
