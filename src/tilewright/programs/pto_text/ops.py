"""Ops: each op that computes with tiles and that PTO text can say, as the lines that say it.

A program's tiles are values, PTO's are buffers: each op writes a buffer of its own, of which the reader makes a value
again. Tiles that the cube reads move to its memories first, and those that it wrote move back.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP32, DataType
from tilewright.ops.convert import round_mode
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import LINE, NoPtoError, Number, Tile, kept, room_of
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    in_vec,
    lain_down,
    least,
    matrix,
    moved,
    refuse,
    refuse_batches,
    result,
    writes,
)
from tilewright.programs.pto_text.writer import Writer

# elementwise

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min", "fmod": "fmod",
    "rem": "rem", "and_": "and", "or_": "or", "xor": "xor", "shl": "shl", "shr": "shr",
}  # fmt: skip
_SWAPS = ("add", "mul", "max", "min", "and", "or", "xor")
_EXPANDS = ("add", "sub", "mul", "div", "max", "min")
"""The words that PTO has for a tile and a row or a column."""


@writes(*(f"tile.{name}" for name in _BINARY))
def _binary(w: Writer, call: Call, given: Given) -> Tile:
    lhs, rhs = given["lhs"], given["rhs"]
    word = _BINARY[call.op.spec.name]
    if isinstance(lhs, Number):
        return _with_number_first(w, call, word, lhs, in_vec(w, rhs))
    a = in_vec(w, lhs)
    if isinstance(rhs, Number) and word != "rem":  # `trems` of floats has the dividend's sign, `trem` the divisor's
        return w.op(f"t{word}s", [a, converted(w, rhs, a.dtype)], result(w, call, a.valid))
    if isinstance(rhs, Number):
        return w.op(f"t{word}", [a, _whole(w, rhs, a.dtype, a)], result(w, call, a.valid))
    return _met(w, call, word, a, in_vec(w, rhs))


def _with_number_first(w: Writer, call: Call, word: str, number: Number, tile: Tile) -> Tile:
    first, out = converted(w, number, tile.dtype), result(w, call, tile.valid)
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
    shape, _ = matrix(call)
    refuse(call, any(not _meets(each.shape, shape) for each in (a, b)), "of tiles whose axes meet otherwise")
    if b.shape == shape == a.shape:
        out = result(w, call, _both(w, a, b))
        lying = (lain_down(w, each) if each.is_column else each for each in (a, b, out))  # these ops are for rows
        w.op(f"t{word}", [next(lying), next(lying)], next(lying))
        return out
    valid = _both(w, a, b)
    if shape not in (a.shape, b.shape):
        a = _spread(w, a, shape, valid)
    if a.shape == shape and word in _EXPANDS:
        return w.op(f"t{_axis(b)}expand{word}", [a, b], result(w, call, valid))
    if a.shape == shape:
        return w.op(f"t{word}", [a, _spread(w, b, shape, valid)], result(w, call, valid))
    if word in _SWAPS and word in _EXPANDS:
        return w.op(f"t{_axis(a)}expand{word}", [b, a], result(w, call, valid))
    return w.op(f"t{word}", [_spread(w, a, shape, valid), b], result(w, call, valid))


def _meets(own: tuple[int, int], shape: tuple[int, int]) -> bool:
    """Return whether a tile is as large as a result, or a row or a column of it."""
    return all(extent in (1, whole) for extent, whole in zip(own, shape, strict=True))


def _spread(w: Writer, tile: Tile, shape: tuple[int, int], valid: Pair) -> Tile:
    """Write a row or a column as often as fills a tile; return one that fills it as it is."""
    if tile.shape == shape:
        return tile
    if 1 not in shape and tile.shape == (1, 1):
        raise NoPtoError("this export has no words for one element in all places of a tile")
    return w.op(f"t{_axis(tile)}expand", [tile], w.tile("spread", tile.dtype, shape, valid))


def _both(w: Writer, a: Tile, b: Tile) -> Pair:
    """Return how much of both is valid, where one of them may be a row or a column of the other."""
    rows, cols = (
        second if own < other else first if other < own or first == second else least(w, first, second)
        for first, second, own, other in zip(a.valid, b.valid, a.shape, b.shape, strict=True)
    )
    return rows, cols


def _axis(tile: Tile) -> str:
    return "row" if tile.shape[1] == 1 else "col"


_EXPANDED = (*_EXPANDS, "expdif")


@writes(*(f"tile.{axis}_expand_{word}" for axis in ("row", "col") for word in _EXPANDED))
def _expanded(w: Writer, call: Call, given: Given) -> Tile:
    first, second = in_vec(w, given["x"]), in_vec(w, given["vec"])
    axis, _, word = call.op.spec.name.partition("_expand_")
    return w.op(f"t{axis}expand{word}", [first, second], result(w, call, first.valid))


@writes("tile.row_expand", "tile.col_expand")
def _expand(w: Writer, call: Call, given: Given) -> Tile:
    like, line = in_vec(w, given["x"]), in_vec(w, given["vec"])
    made = _spread(w, line, like.shape, like.valid)
    if call.op.spec.name == "col_expand" and line.name in w.ascending:
        w.ascending.add(made.name)
    return made


_WHOLE = {"floor": "FLOOR", "ceil": "CEIL", "trunc": "TRUNC", "round": "RINT"}
"""Ops that give whole numbers, by the rounding that does."""


@writes(*(f"tile.{word}" for word in ("exp", "log", "sqrt", "rsqrt", "recip", "neg", "abs", "relu", "not_", "square")))
def _unary(w: Writer, call: Call, given: Given) -> Tile:
    x, word = in_vec(w, given["x"]), call.op.spec.name.strip("_")
    name, operands = ("tmul", [x, x]) if word == "square" else (f"t{word}", [x])
    if word == "not" and matrix(call)[1].dtype == BOOL:
        name, operands = "txors", [x, w.constant(1, x.dtype)]
    return w.op(name, operands, result(w, call, x.valid))


@writes(*(f"tile.{word}" for word in _WHOLE))
def _whole_numbers(w: Writer, call: Call, given: Given) -> Tile:
    """Floats rounded to whole numbers are floats that are converted to their own type."""
    x = in_vec(w, given["x"])
    words = f"{{rmode = #pto<round_mode {_WHOLE[call.op.spec.name]}>}}"
    return w.op("tcvt", [x], result(w, call, x.valid), words)


@writes("tile.lrelu")
def _leaky(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["lhs"])
    return w.op("tlrelu", [x, converted(w, given["rhs"], FP32)], result(w, call, x.valid))


@writes("tile.cast")
def _cast(w: Writer, call: Call, given: Given) -> Tile:
    x, mode = in_vec(w, given["x"]), round_mode(given["mode"]).name
    shape, type_ = matrix(call)
    if type_.dtype == BOOL:
        return _bits(w, x)
    need = room_of(type_.dtype, shape, MemorySpace.Vec)
    room = max(x.room[0], need[0]), max(x.room[1], need[1])
    source, out = _with_room(w, x, room), result(w, call, x.valid, room=room)
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


# rows, columns, choices, products


@writes(*(f"tile.{axis}_{word}" for axis in ("row", "col") for word in ("sum", "max", "min", "prod")))
def _fold(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    axis, _, word = call.op.spec.name.partition("_")
    if axis == "col":
        refuse_batches(call)
    one = w.constant(1)
    return w.op(f"t{axis}{word}", [x], result(w, call, (x.valid[0], one) if axis == "row" else (one, x.valid[1])))


@writes(*(f"tile.{word}" for word in ("gt", "ge", "lt", "le", "eq", "ne")))
def _compare(w: Writer, call: Call, given: Given) -> Tile:
    lhs, rhs, word = given["lhs"], given["rhs"], call.op.spec.name
    if isinstance(lhs, Number):
        lhs, rhs, word = rhs, lhs, _MIRRORED.get(word, word)
    (shape, _), a = matrix(call), in_vec(w, lhs)
    b = _whole(w, rhs, a.dtype, a)  # `tcmps` packs its bits as no selection reads them
    refuse(call, not (_meets(a.shape, shape) and _meets(b.shape, shape)), "of tiles whose axes meet otherwise")
    valid, room = _both(w, a, b), (shape[0], -(-shape[1] // LINE) * LINE)
    first, second = (_with_room(w, _spread(w, each, shape, valid), room) for each in (a, b))
    mode = f"{{cmpMode = #pto<cmp {word}>}}"
    return w.op("tcmp", [first, second], result(w, call, valid, True, room), mode)


def _bits(w: Writer, tile: Tile) -> Tile:
    """Write where the elements of a tile are not zero."""
    room = tile.shape[0], -(-tile.shape[1] // LINE) * LINE
    sides = tile, _whole(w, w.constant(0, tile.dtype), tile.dtype, tile)
    first, second = (_with_room(w, each, room) for each in sides)
    bits = w.tile("bits", BOOL, tile.shape, tile.valid, is_mask=True, room=room)
    return w.op("tcmp", [first, second], bits, "{cmpMode = #pto<cmp ne>}")


_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def _whole(w: Writer, side: Number | Tile, dtype: DataType, like: Tile) -> Tile:
    """Return a tile as it is, a number in all elements of one like another."""
    if isinstance(side, Number):
        return w.op("texpands", [converted(w, side, dtype)], w.tile("side", dtype, like.shape, like.valid))
    return in_vec(w, side)


@writes("tile.where")
def _where(w: Writer, call: Call, given: Given) -> Tile:
    mask, sides = given["condition"], (given["x"], given["y"])
    refuse(call, not isinstance(mask, Tile), "by a number")
    mask = mask if mask.is_mask else _bits(w, mask)
    shape, type_ = matrix(call)
    refuse(call, mask.shape != shape, "by a mask of a row or a column")
    given_sides = [_whole(w, side, kept(type_.dtype), mask) for side in sides]
    refuse(call, not all(_meets(side.shape, shape) for side in given_sides), "of tiles whose axes meet otherwise")
    valid = mask.valid
    for tile in given_sides:
        valid = _both(w, replace(mask, valid=valid), tile)
    return w.op("tsel", [mask, *(_spread(w, side, shape, valid) for side in given_sides)], result(w, call, valid))


@writes("tile.matmul", "tile.matmul_acc")
def _product(w: Writer, call: Call, given: Given) -> Tile:
    refuse_batches(call)
    acc, (lhs, rhs) = given.get("acc"), (given["lhs"], given["rhs"])
    is_turned = bool(given.get("a_trans") or given.get("b_trans"))
    refuse(call, is_turned, "of a transposed operand", "transpose the tile with `pl.transpose` first")
    shape, type_ = matrix(call)
    a = moved(w, moved(w, in_vec(w, lhs), MemorySpace.Mat), MemorySpace.Left)
    b = moved(w, moved(w, in_vec(w, rhs), MemorySpace.Mat), MemorySpace.Right)
    valid, room = (a.valid[0], b.valid[1]), (a.room[0], b.room[1])
    first: Number | None = given.get("init_cond")
    if acc is not None and acc.memory is MemorySpace.Acc:
        return _summed(w, acc, a, b, first)
    product = w.op("tmatmul", [a, b], w.tile(call.op.spec.name, type_.dtype, shape, valid, MemorySpace.Acc, room=room))
    if acc is None:
        return product
    made = in_vec(w, product)  # since nothing leads back to an accumulator
    out = w.tile(call.op.spec.name, type_.dtype, shape, made.valid)
    if first is None:
        return w.op("tadd", [acc, made], out)
    with w.branch(f"scf.if {first.name}") as otherwise:
        w.op("tmov", [made], out)
        otherwise()
        w.op("tadd", [acc, made], out)
    return out


def _summed(w: Writer, acc: Tile, a: Tile, b: Tile, first: Number | None) -> Tile:
    """Write a product that is added to an accumulator: in place where a loop carries that, or else to a new one."""
    valid, begins = (a.valid[0], b.valid[1]), w.sums.get(acc.name)
    is_open = None in (number.known for number in acc.valid)
    if acc.name not in w.sums:
        out = w.tile("matmul_acc", acc.dtype, acc.shape, valid, MemorySpace.Acc, room=(a.room[0], b.room[1]))
    else:
        out = replace(acc, valid=w.unknown(valid)) if is_open else acc
        if is_open:
            w.resize(out, valid)
    if begins is not None:
        start = computed(w, "eq", [*begins], BOOL)
        first = start if first is None else computed(w, "or_", [first, start], BOOL)
    if first is None:
        return w.op("tmatmul.acc", [acc, a, b], out)
    with w.branch(f"scf.if {first.name}") as otherwise:
        w.op("tmatmul", [a, b], out)
        otherwise()
        w.op("tmatmul.acc", [acc, a, b], out)
    return out
