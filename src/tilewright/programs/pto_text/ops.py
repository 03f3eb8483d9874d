"""Ops: each op on tiles that PTO text can say, as the lines that say it.

A program's tiles are values, PTO's are buffers: each op writes a buffer of its own, of which the reader makes a value
again. Tiles that the cube reads move to its memories first, and those that it wrote move back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType, MemorySpace
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX, DataType
from tilewright.ops.convert import round_mode
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import LINE, NoPtoError, Number, Tensor, Tile, Value, element, room_of
from tilewright.programs.pto_text.writer import Writer

Given = dict[str, Any]
"""The arguments of an op by name: tiles, tensors and numbers as values of the text, all else as the program has it."""
Writes = Callable[[Writer, Call, Given], Value | None]
OPS: dict[str, Writes] = {}


def _writes(*names: str) -> Callable[[Writes], Writes]:
    def signed_in(function: Writes) -> Writes:
        OPS.update(dict.fromkeys(names, function))
        return function

    return signed_in


def written(w: Writer, call: Call, value: Callable[[Any], Any]) -> Value | None:
    """Write an op, whose operands `value` gives; return what it gives."""
    name = call.op.name
    function = OPS.get(name)
    if function is None:
        raise NoPtoError(f"this export has no words for `pl.{name}`")
    return function(w, call, {key: value(each) for key, each in arguments(call).items()})


def _type(call: Call) -> tuple[tuple[int, int], TileType]:
    """Return the two extents of what an op gives; NoPtoError for tiles of other ranks."""
    type_ = call.type
    assert isinstance(type_, TileType)
    if len(type_.shape) != 2:
        raise NoPtoError(f"PTO's tiles have two axes, and `pl.{call.op.name}` gives {len(type_.shape)}")
    return (type_.shape[0], type_.shape[1]), type_


def _result(
    w: Writer,
    call: Call,
    like: tuple[Number, Number],
    is_mask: bool = False,
    room: tuple[int, int] | None = None,
) -> Tile:
    """Write the buffer of a result, as much of it valid as its type says, or else as `like` says."""
    shape, type_ = _type(call)
    pairs = zip(type_.valid, like, strict=True)
    rows, cols = (w.constant(extent) if isinstance(extent, int) else each for extent, each in pairs)
    return w.tile(call.op.spec.name, type_.dtype, shape, (rows, cols), is_mask=is_mask, room=room)


def in_vec(w: Writer, tile: Tile) -> Tile:
    """Return a tile where vectors read it; NoPtoError for bits, of which only choices are made."""
    if tile.is_mask:
        raise NoPtoError("this export computes nothing of masks: it only chooses by them")
    return tile if tile.memory is MemorySpace.Vec else moved(w, tile, MemorySpace.Vec)


def moved(w: Writer, tile: Tile, memory: MemorySpace) -> Tile:
    """Write the copy of a tile to a memory; return the copy."""
    return w.op("tmov", [tile], w.tile(tile.name[1:], tile.dtype, tile.shape, tile.valid, memory))


# memory


@_writes("tile.load")
def _load(w: Writer, call: Call, given: Given) -> Tile:
    source: Tensor = given["tensor"]
    _refuse(call, given["mask"] is not None, "with a mask")
    _refuse(call, given["pad"] is not None or given["clamp"], "that pads or clamps")
    _refuse(call, given["valid_shape"] is not None, "with a valid shape of its own")
    _refuse(call, len(source.shape) != 2, "of a tensor that has not two axes")
    rows, cols = (
        size if isinstance(valid, int) else _least(w, computed(w, "sub", [extent, at], INDEX), size)
        for extent, at, size, valid in zip(
            source.shape, given["offsets"], given["shapes"], _type(call)[1].valid, strict=True
        )
    )
    tile = _result(w, call, (rows, cols))
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(source.offsets, given["offsets"], strict=True)]
    name, kind = w.window(source, places, tile.valid)
    w.line(f"pto.tload ins({name} : {kind}) outs({tile.name} : {tile.type})")
    return tile


def _least(w: Writer, left: Number, size: Number) -> Number:
    return computed(w, "min", [left, size], INDEX)


@_writes("tile.store", "tensor.assemble")
def _store(w: Writer, call: Call, given: Given) -> Value | None:
    is_store = call.op.name == "tile.store"
    tile = given["tile" if is_store else "source"]
    tensor: Tensor = given["output_tensor" if is_store else "target"]
    offsets = given["offsets" if is_store else "offset"]
    _refuse(call, given.get("atomic", AtomicType.None_) != AtomicType.None_, "that adds")
    _refuse(call, given.get("mask") is not None, "with a mask")
    _refuse(call, not isinstance(tile, Tile) or len(tensor.shape) != 2, "of anything but a tile of two axes")
    places = [computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, offsets, strict=True)]
    tile = in_vec(w, tile)
    name, kind = w.window(tensor, places, tile.valid)
    w.line(f"pto.tstore ins({tile.name} : {tile.type}) outs({name} : {kind})")
    return tensor


@_writes("tensor.write")
def _write(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    number = converted(w, given["value"], tensor.dtype)
    place, kind = element_of(w, tensor, given["indices"]), element(tensor.dtype)
    w.line(f"pto.store_scalar {number.name}, {place} : !pto.ptr<{kind}, gm>, {kind}")
    return tensor


def element_of(w: Writer, tensor: Tensor, indices: Sequence[Number]) -> str:
    """Write where an element of a tensor lies; return its pointer and offset."""
    at = w.constant(0)
    for index, first, stride in zip(indices, tensor.offsets, tensor.strides, strict=True):
        step = computed(w, "mul", [computed(w, "add", [first, index], INDEX), stride], INDEX)
        at = computed(w, "add", [at, step], INDEX)
    return f"{tensor.pointer}[{at.name}]"


@_writes("tensor.slice")
def _slice(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    _refuse(call, len(given["offset"]) != len(tensor.shape), "that drops axes")
    offsets = tuple(computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, given["offset"], strict=True))
    left = [computed(w, "sub", [n, at], INDEX) for n, at in zip(tensor.shape, given["offset"], strict=True)]
    shape = tuple(_least(w, rest, size) for rest, size in zip(left, given["shape"], strict=True))
    return replace(tensor, shape=shape, offsets=offsets)


def _refuse(call: Call, is_so: bool, what: str) -> None:
    if is_so:
        raise NoPtoError(f"this export has no words for `pl.{call.op.name}` {what}")


# elementwise

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min", "fmod": "fmod",
    "rem": "rem", "and_": "and", "or_": "or", "xor": "xor", "shl": "shl", "shr": "shr",
}  # fmt: skip
_SWAPS = ("add", "mul", "max", "min", "and", "or", "xor")
_EXPANDS = ("add", "sub", "mul", "div", "max", "min")
"""The words that PTO has for a tile and a row or a column."""


@_writes(*(f"tile.{name}" for name in _BINARY))
def _binary(w: Writer, call: Call, given: Given) -> Tile:
    lhs, rhs = given["lhs"], given["rhs"]
    word = _BINARY[call.op.spec.name]
    if isinstance(lhs, Number):
        return _with_number_first(w, call, word, lhs, in_vec(w, rhs))
    a = in_vec(w, lhs)
    if isinstance(rhs, Number) and word != "rem":  # `trems` of floats has the dividend's sign, `trem` the divisor's
        return w.op(f"t{word}s", [a, converted(w, rhs, a.dtype)], _result(w, call, a.valid))
    if isinstance(rhs, Number):
        return w.op(f"t{word}", [a, _whole(w, rhs, a.dtype, a)], _result(w, call, a.valid))
    return _met(w, call, word, a, in_vec(w, rhs))


def _with_number_first(w: Writer, call: Call, word: str, number: Number, tile: Tile) -> Tile:
    first, out = converted(w, number, tile.dtype), _result(w, call, tile.valid)
    if word in _SWAPS:
        return w.op(f"t{word}s", [tile, first], out)
    if word == "div":
        return w.op("tdivs", [first, tile], out)
    if word != "sub":
        return w.op(f"t{word}", [_whole(w, first, tile.dtype, tile), tile], out)
    w.op("tneg", [tile], out)
    return w.op("tadds", [out, first], out)


def _met(w: Writer, call: Call, word: str, a: Tile, b: Tile) -> Tile:
    """Write an op on two tiles, one of which may be a row or a column."""
    shape, _ = _type(call)
    if b.shape == shape == a.shape:
        return w.op(f"t{word}", [a, b], _result(w, call, _both(w, a, b)))
    if shape not in (a.shape, b.shape):
        raise NoPtoError("this export meets a column with a row only through a tile as large as both")
    if a.shape == shape and word in _EXPANDS:
        return w.op(f"t{_axis(b)}expand{word}", [a, b], _result(w, call, a.valid))
    if a.shape == shape:
        return w.op(f"t{word}", [a, _spread(w, b, a)], _result(w, call, a.valid))
    if word in _SWAPS and word in _EXPANDS:
        return w.op(f"t{_axis(a)}expand{word}", [b, a], _result(w, call, b.valid))
    return w.op(f"t{word}", [_spread(w, a, b), b], _result(w, call, b.valid))


def _spread(w: Writer, tile: Tile, like: Tile) -> Tile:
    """Write a row or a column as often as fills a tile like another."""
    return w.op(f"t{_axis(tile)}expand", [tile], w.tile("spread", tile.dtype, like.shape, like.valid))


def _both(w: Writer, a: Tile, b: Tile) -> tuple[Number, Number]:
    rows, cols = (x if x == y else _least(w, x, y) for x, y in zip(a.valid, b.valid, strict=True))
    return rows, cols


def _axis(tile: Tile) -> str:
    return "row" if tile.shape[1] == 1 else "col"


@_writes(*(f"tile.{axis}_expand_{word}" for axis in ("row", "col") for word in ("add", "sub", "mul", "div")))
def _expanded(w: Writer, call: Call, given: Given) -> Tile:
    first, second = in_vec(w, given["x"]), in_vec(w, given["vec"])
    axis, _, word = call.op.spec.name.partition("_expand_")
    return w.op(f"t{axis}expand{word}", [first, second], _result(w, call, first.valid))


@_writes("tile.row_expand", "tile.col_expand")
def _expand(w: Writer, call: Call, given: Given) -> Tile:
    return _spread(w, in_vec(w, given["vec"]), in_vec(w, given["x"]))


@_writes(*(f"tile.{word}" for word in ("exp", "log", "sqrt", "rsqrt", "recip", "neg", "abs", "relu", "not_", "square")))
def _unary(w: Writer, call: Call, given: Given) -> Tile:
    x, word = in_vec(w, given["x"]), call.op.spec.name.strip("_")
    name, operands = ("tmul", [x, x]) if word == "square" else (f"t{word}", [x])
    return w.op(name, operands, _result(w, call, x.valid))


@_writes("tile.cast")
def _cast(w: Writer, call: Call, given: Given) -> Tile:
    x, mode = in_vec(w, given["x"]), round_mode(given["mode"]).name
    shape, type_ = _type(call)
    need = room_of(type_.dtype, shape, MemorySpace.Vec)
    room = max(x.room[0], need[0]), max(x.room[1], need[1])
    source, out = _with_room(w, x, room), _result(w, call, x.valid, room=room)
    return w.op("tcvt", [source], out, _conversion(x.dtype, type_.dtype, mode))


def _conversion(have: DataType, dtype: DataType, mode: str) -> str:
    """Return the words of a conversion: floats stop at the limits of integers, all else wraps or becomes infinite."""
    is_rounded = have.is_float() and dtype.is_int()
    rounding, limits = (mode.upper(), "ON") if is_rounded else ("RINT", "OFF")
    return f"{{rmode = #pto<round_mode {rounding}>, sat_mode = #pto<saturation_mode {limits}>}}"


def _with_room(w: Writer, tile: Tile, room: tuple[int, int]) -> Tile:
    """Return a tile in a buffer of as many rows and columns."""
    if tile.room == room:
        return tile
    return w.op("tmov", [tile], w.tile(tile.name[1:], tile.dtype, tile.shape, tile.valid, room=room))


@_writes("tile.full")
def _full(w: Writer, call: Call, given: Given) -> Tile:
    shape, type_ = _type(call)
    _refuse(call, given["valid_shape"] is not None, "with a valid shape of its own")
    out = _result(w, call, (w.constant(shape[0]), w.constant(shape[1])))
    return w.op("texpands", [converted(w, given["value"], type_.dtype)], out)


@_writes("tile.transpose")
def _transpose(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    return w.op("ttrans", [x], _result(w, call, (x.valid[1], x.valid[0])))


# rows, columns, choices, products


@_writes(*(f"tile.{axis}_{word}" for axis in ("row", "col") for word in ("sum", "max", "min", "prod")))
def _fold(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    axis, _, word = call.op.spec.name.partition("_")
    one = w.constant(1)
    return w.op(f"t{axis}{word}", [x], _result(w, call, (x.valid[0], one) if axis == "row" else (one, x.valid[1])))


@_writes(*(f"tile.{word}" for word in ("gt", "ge", "lt", "le", "eq", "ne")))
def _compare(w: Writer, call: Call, given: Given) -> Tile:
    lhs, rhs = given["lhs"], given["rhs"]
    _refuse(call, not isinstance(lhs, Tile), "with a number first")
    a = in_vec(w, lhs)
    _refuse(call, isinstance(rhs, Tile) and rhs.shape != a.shape, "of tiles of two shapes")
    mode = f"{{cmpMode = #pto<cmp {call.op.spec.name}>}}"
    room = a.shape[0], -(-a.shape[1] // LINE) * LINE
    second = _whole(w, rhs, a.dtype, a)  # `tcmps` packs its bits as no selection reads them
    first, second = _with_room(w, a, room), _with_room(w, second, room)
    return w.op("tcmp", [first, second], _result(w, call, a.valid, True, room), mode)


def _whole(w: Writer, side: Number | Tile, dtype: DataType, like: Tile) -> Tile:
    """Return a tile as it is, a number in all elements of one like another."""
    if isinstance(side, Number):
        return w.op("texpands", [converted(w, side, dtype)], w.tile("side", dtype, like.shape, like.valid))
    return in_vec(w, side)


@_writes("tile.where")
def _where(w: Writer, call: Call, given: Given) -> Tile:
    mask, sides = given["condition"], (given["x"], given["y"])
    _refuse(call, not isinstance(mask, Tile) or not mask.is_mask, "by anything but a comparison")
    shape, type_ = _type(call)
    whole = [_whole(w, side, type_.dtype, mask) for side in sides]
    _refuse(call, any(side.shape != shape for side in (mask, *whole)), "of tiles of two shapes")
    return w.op("tsel", [mask, *whole], _result(w, call, mask.valid))


@_writes("tile.matmul", "tile.matmul_acc")
def _product(w: Writer, call: Call, given: Given) -> Tile:
    acc, (lhs, rhs) = given.get("acc"), (given["lhs"], given["rhs"])
    _refuse(call, bool(given.get("a_trans") or given.get("b_trans")), "of a transposed operand")
    shape, type_ = _type(call)
    a = moved(w, moved(w, in_vec(w, lhs), MemorySpace.Mat), MemorySpace.Left)
    b = moved(w, moved(w, in_vec(w, rhs), MemorySpace.Mat), MemorySpace.Right)
    valid, room = (a.valid[0], b.valid[1]), (a.room[0], b.room[1])
    sums = w.tile(call.op.spec.name, type_.dtype, shape, valid, MemorySpace.Acc, room=room)
    if acc is not None and acc.memory is MemorySpace.Acc:
        return w.op("tmatmul.acc", [acc, a, b], sums)
    product = w.op("tmatmul", [a, b], sums)
    if acc is None:
        return product
    made = in_vec(w, product)  # since nothing leads back to an accumulator
    return w.op("tadd", [acc, made], w.tile(call.op.spec.name, type_.dtype, shape, made.valid))
