"""Ops: each op that computes with tiles and that PTO text can say, as the lines that say it.

A program's tiles are values, PTO's are buffers: each op writes a buffer of its own, of which the reader makes a value
again. Tiles that the cube reads move to its memories first, and those that it wrote move back.
"""

from __future__ import annotations

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP32, DataType
from tilewright.ops.convert import round_mode
from tilewright.programs.pto_text.choices import bits_of
from tilewright.programs.pto_text.elements import element_of
from tilewright.programs.pto_text.meeting import axis_of, both, filled, meets, spread, with_room
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import Number, Tile, room_of
from tilewright.programs.pto_text.words import (
    Given,
    front,
    in_vec,
    lain_down,
    matrix,
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
        return w.op(f"t{word}", [a, filled(w, rhs, a.dtype, a)], result(w, call, a.valid))
    return _met(w, call, word, a, in_vec(w, rhs))


_CHAINED = {"addc": "add", "subc": "sub"}


@writes(*(f"tile.{name}" for name in _CHAINED))
def _chained(w: Writer, call: Call, given: Given) -> Tile:
    """Write an op on three tiles as two, since PTO's `tsubc` adds the third."""
    word, first = _CHAINED[call.op.spec.name], in_vec(w, given["lhs"])
    rhs = given["rhs"]
    second = filled(w, rhs, first.dtype, first) if isinstance(rhs, Number) else in_vec(w, rhs)
    return _met(w, call, word, _met(w, call, word, first, second), in_vec(w, given["rhs2"]))


@writes("tile.clamp")
def _clamp(w: Writer, call: Call, given: Given) -> Tile:
    made = in_vec(w, given["x"])
    for word, bound in (("max", given["min"]), ("min", given["max"])):
        if isinstance(bound, Number):
            made = w.op(f"t{word}s", [made, converted(w, bound, made.dtype)], result(w, call, made.valid))
        elif bound is not None:
            made = _met(w, call, word, made, in_vec(w, bound))
    return made


@writes("tile.prelu")
def _parametric(w: Writer, call: Call, given: Given) -> Tile:
    return _met(w, call, "prelu", in_vec(w, given["tile"]), in_vec(w, given["slope"]))


def _with_number_first(w: Writer, call: Call, word: str, number: Number, tile: Tile) -> Tile:
    first, out = converted(w, number, tile.dtype), result(w, call, tile.valid)
    if word in _SWAPS:
        return w.op(f"t{word}s", [tile, first], out)
    if word == "div":
        return w.op("tdivs", [first, tile], out)
    if word != "sub":
        return w.op(f"t{word}", [filled(w, first, tile.dtype, tile), tile], out)
    w.op("tneg", [tile], out)
    return w.op("tadds", [out, first], out)


def _met(w: Writer, call: Call, word: str, a: Tile, b: Tile) -> Tile:
    """Write an op on two tiles, one of which may be a row or a column."""
    shape, _ = matrix(call)
    refuse(call, any(not meets(each.shape, shape) for each in (a, b)), "of tiles whose axes meet otherwise")
    if b.shape == shape == a.shape:
        out = result(w, call, both(w, a, b))
        lying = (lain_down(w, each) if each.is_column else each for each in (a, b, out))  # these ops are for rows
        w.op(f"t{word}", [next(lying), next(lying)], next(lying))
        return out
    valid = both(w, a, b)
    a, b = (spread(w, each, shape, valid) if each.shape == (1, 1) else each for each in (a, b))
    if shape not in (a.shape, b.shape):
        a = spread(w, a, shape, valid)
    if a.shape == shape and word in _EXPANDS:
        return w.op(f"t{axis_of(b)}expand{word}", [a, b], result(w, call, valid))
    if a.shape == shape:
        return w.op(f"t{word}", [a, spread(w, b, shape, valid)], result(w, call, valid))
    if word in _SWAPS and word in _EXPANDS:
        return w.op(f"t{axis_of(a)}expand{word}", [b, a], result(w, call, valid))
    return w.op(f"t{word}", [spread(w, a, shape, valid), b], result(w, call, valid))


_EXPANDED = (*_EXPANDS, "expdif")


@writes(*(f"tile.{axis}_expand_{word}" for axis in ("row", "col") for word in _EXPANDED))
def _expanded(w: Writer, call: Call, given: Given) -> Tile:
    first, second = in_vec(w, given["x"]), in_vec(w, given["vec"])
    axis, _, word = call.op.spec.name.partition("_expand_")
    out = result(w, call, first.valid)
    if axis == "row" and second.shape == (1, 1):
        return _one_by_one(w, word, first, second, out)
    if axis == "col" and second.valid[1].known != first.valid[1].known:
        second = front(w, second, second.shape, (second.valid[0], first.valid[1]))
    return w.op(f"t{axis}expand{word}", [with_room(w, first, out.room), second], out)


def _one_by_one(w: Writer, word: str, first: Tile, second: Tile, out: Tile) -> Tile:
    """Write an op on a row and its one element."""
    number, name = element_of(w, second, w.constant(0)), "sub" if word == "expdif" else word
    w.op(f"t{name}s", [first, number], out)
    return w.op("texp", [out], out) if word == "expdif" else out


@writes("tile.row_expand", "tile.col_expand")
def _expand(w: Writer, call: Call, given: Given) -> Tile:
    like, line = in_vec(w, given["x"]), in_vec(w, given["vec"])
    made = spread(w, line, like.shape, like.valid)
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
        return bits_of(w, x)
    need = room_of(type_.dtype, shape, MemorySpace.Vec)
    room = max(x.room[0], need[0]), max(x.room[1], need[1])
    source, out = with_room(w, x, room), result(w, call, x.valid, room=room)
    return w.op("tcvt", [source], out, _conversion(x.dtype, type_.dtype, mode))


def _conversion(have: DataType, dtype: DataType, mode: str) -> str:
    """Return the words of a conversion: floats stop at the limits of integers, all else wraps or becomes infinite."""
    is_rounded = have.is_float() and dtype.is_int()
    rounding, limits = (mode.upper(), "ON") if is_rounded else ("RINT", "OFF")
    return f"{{rmode = #pto<round_mode {rounding}>, sat_mode = #pto<saturation_mode {limits}>}}"


# rows, columns, choices, products


@writes(*(f"tile.{axis}_{word}" for axis in ("row", "col") for word in ("sum", "max", "min", "prod")))
def _fold(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    axis, _, word = call.op.spec.name.partition("_")
    if axis == "col":
        refuse_batches(call)
    one = w.constant(1)
    if axis == "row" and x.is_column:
        return w.op("tmov", [x], result(w, call, x.valid))  # a fold of one element is that element
    return w.op(f"t{axis}{word}", [x], result(w, call, (x.valid[0], one) if axis == "row" else (one, x.valid[1])))
