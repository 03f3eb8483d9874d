"""Ops: each op that computes with tiles and that PTO text can say, as the lines that say it.

A program's tiles are values, PTO's are buffers: each op writes a buffer of its own, of which the reader makes a value
again. Tiles that the cube reads move to its memories first, and those that it wrote move back.
"""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import BF16, BOOL, FP16, FP32, FP64, INDEX, INT64, DataType
from tilewright.ops.convert import round_mode
from tilewright.programs.pto_text.choices import bits_of
from tilewright.programs.pto_text.conversions import conversion, in_type, room_of_both
from tilewright.programs.pto_text.elements import element_of
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.meeting import axis_of, both, filled, refuse_meeting, spread
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import LINE, Number, Tile
from tilewright.programs.pto_text.words import (
    Given,
    as_valid,
    by_rows,
    expanded,
    front,
    in_vec,
    matrix,
    no_function,
    part_of,
    put_over,
    refuse,
    result,
    seen_as,
    with_room,
    writes,
)
from tilewright.programs.pto_text.writer import NotTakenError, Writer

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
    word, dtype = _BINARY[call.op.spec.name], matrix(call)[1].dtype
    lhs, rhs = (_met_in(w, given[side], dtype if word not in ("shl", "shr") else BOOL) for side in ("lhs", "rhs"))
    if isinstance(lhs, Number):
        assert isinstance(rhs, Tile)
        return _with_number_first(w, call, word, lhs, in_vec(w, rhs))
    a = in_vec(w, lhs)
    if isinstance(rhs, Number) and word in ("shl", "shr") and isinstance(rhs.known, int):
        rhs = w.constant(rhs.known % (8 * a.dtype.get_byte()), a.dtype)
    if isinstance(rhs, Number) and word != "rem":  # `trems` of floats has the dividend's sign, `trem` the divisor's
        return by_rows(w, f"t{word}s", [a, converted(w, rhs, a.dtype)], result(w, call, a.valid))
    if isinstance(rhs, Number):
        return by_rows(w, f"t{word}", [a, filled(w, rhs, a.dtype, a)], result(w, call, a.valid))
    return _met(w, call, word, a, in_vec(w, rhs))


def _met_in(w: Writer, operand: Tile | Number, dtype: DataType) -> Tile | Number:
    """Return an operand of two in the type that both meet in; numbers, and bits that meet bits, stay as they are."""
    if isinstance(operand, Number) or dtype == BOOL:
        return operand
    return in_type(w, in_vec(w, operand), dtype)


_CHAINED = {"addc": "add", "subc": "sub"}


@writes(*(f"tile.{name}" for name in _CHAINED))
def _chained(w: Writer, call: Call, given: Given) -> Tile:
    """Write an op on three tiles as two, since PTO's `tsubc` adds the third."""
    word, dtype = _CHAINED[call.op.spec.name], matrix(call)[1].dtype
    first, last = (in_type(w, in_vec(w, given[name]), dtype) for name in ("lhs", "rhs2"))
    rhs = given["rhs"]
    second = filled(w, rhs, dtype, first) if isinstance(rhs, Number) else in_type(w, in_vec(w, rhs), dtype)
    return _met(w, call, word, _met(w, call, word, first, second), last)


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
        return by_rows(w, f"t{word}s", [tile, first], out)
    if word == "div":
        return by_rows(w, "tdivs", [first, tile], out)
    if word != "sub":
        return by_rows(w, f"t{word}", [filled(w, first, tile.dtype, tile), tile], out)
    w.op("tneg", [tile], out)
    return w.op("tadds", [out, first], out)


def _met(w: Writer, call: Call, word: str, a: Tile, b: Tile) -> Tile:
    """Write an op on two tiles, one of which may be a row or a column."""
    shape, _ = matrix(call)
    refuse_meeting(call, (a, b), shape)
    if b.shape == shape == a.shape:
        out = result(w, call, both(w, a, b))
        return by_rows(w, f"t{word}", [as_valid(w, each, out.valid) for each in (a, b)], out)
    valid = both(w, a, b)
    a, b = (spread(w, each, shape, valid) if each.shape == (1, 1) else each for each in (a, b))
    if shape not in (a.shape, b.shape):
        a = spread(w, a, shape, valid)
    if b.shape == shape == a.shape:
        return by_rows(w, f"t{word}", [a, b], result(w, call, valid))
    if a.shape == shape and word in _EXPANDS:
        out = result(w, call, valid)
        return w.op(f"t{axis_of(b)}expand{word}", [with_room(w, a, out.room), b], out)
    if a.shape == shape:
        return w.op(f"t{word}", [a, spread(w, b, shape, valid)], result(w, call, valid))
    if word in _SWAPS and word in _EXPANDS:
        out = result(w, call, valid)
        return w.op(f"t{axis_of(a)}expand{word}", [with_room(w, b, out.room), a], out)
    return w.op(f"t{word}", [spread(w, a, shape, valid), b], result(w, call, valid))


_EXPANDED = (*_EXPANDS, "expdif")


@writes(*(f"tile.{axis}_expand_{word}" for axis in ("row", "col") for word in _EXPANDED))
def _expanded(w: Writer, call: Call, given: Given) -> Tile:
    dtype = matrix(call)[1].dtype
    first, second = (in_type(w, in_vec(w, given[name]), dtype) for name in ("x", "vec"))
    axis, _, word = call.op.spec.name.partition("_expand_")
    if word == "expdif" and dtype not in (FP32, FP16):
        raise no_function(call.op.spec.name, (FP32, FP16), dtype)
    out = result(w, call, first.valid)
    if axis == "row" and second.shape[1] > 1:
        return _packed(w, call, (first, second), out)
    if second.shape == (1, 1) and (axis == "row" or first.is_column):
        return _one_by_one(w, word, first, second, out)
    if axis == "col" and second.shape[0] > 1:  # a row for each of several matrices, spread by now: PTO has one of all
        second = _spread_like(w, second, first)
        return _row_by_row(w, first, second, out) if word == "expdif" else by_rows(w, f"t{word}", [first, second], out)
    if out.is_column:  # PTO spreads along the rows of tiles whose rows lie one after the other
        name = "tcolexpandexpdif" if word == "expdif" else f"t{word}"
        return by_rows(w, name, [first, _spread_like(w, second, first)], out)
    if axis == "col" and second.valid[1].known != first.valid[1].known:
        second = front(w, second, second.shape, (second.valid[0], first.valid[1]))
    return w.op(f"t{axis}expand{word}", [with_room(w, first, out.room), second], out)


def _packed(w: Writer, call: Call, tiles: tuple[Tile, Tile], out: Tile) -> Tile:
    """Write the sum of a tile and rows of 32 bytes, repeated from left to right, or their first column alone."""
    first, line = tiles
    refuse(call, line.valid[1].known not in (1, line.shape[1]), "of rows of which only the run knows how much is valid")
    if line.valid[1].known == 1:
        column = front(w, line, (line.shape[0], 1), line.valid)
        return w.op("trowexpandadd", [with_room(w, first, out.room), column], out)
    repeated, width = w.tile("repeated", line.dtype, out.shape, first.valid), line.shape[1]
    zero, rows = w.constant(0), w.constant(out.shape[0])
    for start in range(0, out.shape[1], width):
        shape = out.shape[0], min(width, out.shape[1] - start)
        source, target = (
            part_of(w, tile, (zero, w.constant(at)), shape, (rows, w.constant(shape[1])))
            for tile, at in ((line, 0), (repeated, start))
        )
        w.op("tmov", [source], target)
    return w.op("tadd", [first, repeated], out)


def _spread_like(w: Writer, line: Tile, like: Tile) -> Tile:
    """Write a line as often as fills a tile, as far as that is valid; it may have been spread by now."""
    made = spread(w, line, like.shape, like.valid)
    return front(w, made, made.shape, like.valid) if made is line and line.valid != like.valid else made


def _row_by_row(w: Writer, first: Tile, second: Tile, out: Tile) -> Tile:
    """Write the exponentials of differences, which are rounded once."""
    shape, valid, zero = (1, first.shape[1]), (w.constant(1), first.valid[1]), w.constant(0)
    with w.counted(first.valid[0], "row") as row:
        a, b = (
            w.op("tmov", [part_of(w, each, (row, zero), shape, valid)], w.tile("row", each.dtype, shape, valid))
            for each in (first, second)
        )
        put_over(w, out, w.op("tcolexpandexpdif", [a, b], w.tile("row", out.dtype, shape, valid)), (row, zero))
    return out


def _one_by_one(w: Writer, word: str, first: Tile, second: Tile, out: Tile) -> Tile:
    """Write an op on a row and its one element."""
    number, name = element_of(w, second, w.constant(0)), "sub" if word == "expdif" else word
    by_rows(w, f"t{name}s", [first, number], out)
    return w.op("texp", [out], out) if word == "expdif" else out


@writes("tile.row_expand", "tile.col_expand")
def _expand(w: Writer, call: Call, given: Given) -> Tile:
    like, line = in_vec(w, given["x"]), in_vec(w, given["vec"])
    made = _spread_like(w, line, like)
    if call.op.spec.name == "col_expand" and line.name in w.ascending:
        w.ascending.add(made.name)
    return made


_FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "recip")
"""Functions of floats, which no machine has for those of bf16."""
_WHOLE = {"floor": "FLOOR", "ceil": "CEIL", "trunc": "TRUNC", "round": "RINT"}
"""Ops that give whole numbers, by the rounding that does."""


@writes(*(f"tile.{word}" for word in ("exp", "log", "sqrt", "rsqrt", "recip", "neg", "abs", "relu", "not_", "square")))
def _unary(w: Writer, call: Call, given: Given) -> Tile:
    word = call.op.spec.name.strip("_")
    x = in_type(w, in_vec(w, given["x"]), matrix(call)[1].dtype)
    name, operands = ("tmul", [x, x]) if word == "square" else (f"t{word}", [x])
    if word in _FUNCTIONS and x.dtype == FP64:
        raise no_function(word, (FP32, FP16), FP64) if word != "recip" else NotTakenError("no machine divides doubles")
    if word in _FUNCTIONS and x.dtype == BF16:  # fp32 gives the same bits: every number has been tried
        wide = in_type(w, x, FP32)
        w.op(name, [wide], wide)
        return w.op("tcvt", [wide], result(w, call, x.valid, room=wide.room), conversion(FP32, BF16, "rint"))
    if word == "not" and matrix(call)[1].dtype == BOOL:
        name, operands = "txors", [x, w.constant(1, x.dtype)]
    return by_rows(w, name, operands, result(w, call, x.valid))


@writes(*(f"tile.{word}" for word in _WHOLE))
def _whole_numbers(w: Writer, call: Call, given: Given) -> Tile:
    """Floats rounded to whole numbers are floats that are converted to their own type."""
    x = in_vec(w, given["x"])
    words = f"{{rmode = #pto<round_mode {_WHOLE[call.op.spec.name]}>}}"
    return w.op("tcvt", [x], result(w, call, x.valid, room=x.room), words)


@writes("tile.lrelu")
def _leaky(w: Writer, call: Call, given: Given) -> Tile:
    x, slope = in_vec(w, given["lhs"]), given["rhs"]
    is_plain = slope.is_natural and slope.known != float("inf")  # PTO multiplies zeros, too
    if x.dtype not in (FP16, FP32) or not is_plain:
        raise NotTakenError("no machine has this slope")
    return w.op("tlrelu", [x, converted(w, given["rhs"], FP32)], result(w, call, x.valid))


@writes("tile.cast")
def _cast(w: Writer, call: Call, given: Given) -> Tile:
    x, mode, type_ = in_vec(w, given["x"]), round_mode(given["mode"]).name, matrix(call)[1]
    if type_.dtype == BOOL:
        return bits_of(w, x)
    room = room_of_both(x, type_.dtype)
    out = result(w, call, x.valid, room=room)
    return w.op("tcvt", [with_room(w, x, room)], out, conversion(x.dtype, type_.dtype, mode))


def rounded(w: Writer, number: Number, dtype: DataType, mode: str) -> Number:
    """Write a number in another type; a float becomes an integer by way of a tile, which can be told how."""
    if mode == "trunc" or not number.dtype.is_float() or dtype.is_float() or dtype == BOOL:
        return converted(w, number, dtype, mode)
    zero, one = w.constant(0), w.constant(1)
    whole = INT64 if dtype == INDEX else dtype
    tile = expanded(w, number, w.tile("number", number.dtype, (1, 1), (one, one), room=(1, LINE)))
    out = w.tile("rounded", whole, (1, 1), (one, one), room=(1, LINE))
    w.op("tcvt", [tile], out, conversion(number.dtype, whole, mode))
    return converted(w, element_of(w, out, zero), dtype)


# rows, columns, choices, products


_FOLDS = ("sum", "max", "min", "prod")


def _refuse_sums(call: Call, dtype: DataType) -> None:
    """Refuse sums and products of doubles, which no machine has: in another order they round otherwise."""
    if dtype == FP64 and call.op.spec.name.endswith(("sum", "prod")):
        raise no_function(call.op.spec.name, (FP32, FP16), dtype)


@writes(*(f"tile.row_{word}" for word in _FOLDS))
def _fold_rows(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    if x.valid[1].known == 0:
        return _of_nothing(w, call, result(w, call, (x.valid[0], w.constant(1))))
    if x.is_column:  # a fold of one element is that element
        out = result(w, call, (x.valid[0], w.constant(1)))
        if x.valid[1].known == 1:
            return w.op("tmov", [x], out)
        return put_over(w, _of_nothing(w, call, out), x, (w.constant(0), w.constant(0)))
    _refuse_sums(call, x.dtype)
    return w.op(f"t{call.op.spec.name.replace('_', '')}", [x], result(w, call, (x.valid[0], w.constant(1))))


def _of_nothing(w: Writer, call: Call, out: Tile) -> Tile:
    """Write what folds of nothing give."""
    start = call.op.spec.start
    assert start is not None
    return expanded(w, w.constant(start(out.dtype), out.dtype), out)


@writes(*(f"tile.col_{word}" for word in _FOLDS))
@each_matrix
def _fold_columns(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    out = result(w, call, (w.constant(1), x.valid[1]))
    if x.valid[0].known == 0:
        return _of_nothing(w, call, out)
    _refuse_sums(call, x.dtype)
    if not x.is_column:
        return w.op(f"t{call.op.spec.name.replace('_', '')}", [x], out)
    one = w.constant(1)
    row = seen_as(w, x, x.dtype, (1, x.shape[0]), (1, x.room[0]), (one, x.valid[0]))
    line = w.op("tmov", [row], w.tile("line", x.dtype, row.shape, row.valid))
    return w.op(f"trow{call.op.spec.name.removeprefix('col_')}", [line], out)
