"""Choices: comparisons, the masks that they make, and what those choose.

A mask is bits, eight columns a byte, in a buffer of bytes as large as what was compared; `pl.cmp` packs them alike.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.core.enums import CmpType
from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType, Type
from tilewright.dtypes import BOOL, INDEX, INT8, INT32, INT64, UINT8, UINT64, common
from tilewright.ops.families import common_shape
from tilewright.ops.indices import chosen
from tilewright.ops.selection import COMPARISONS
from tilewright.programs.pto_text.conversions import in_type
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import by_matrix
from tilewright.programs.pto_text.meeting import both, filled, refuse_meeting, spread
from tilewright.programs.pto_text.readers import takes
from tilewright.programs.pto_text.scalars import chosen as picked
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import LINE, Number, Tile, element, kept
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    expanded,
    front,
    in_vec,
    lain_down,
    matrix,
    meets_more,
    refuse,
    result,
    rows_for,
    seen_as,
    with_room,
    writes,
)
from tilewright.programs.pto_text.writer import Writer


@writes(*(f"tile.{word}" for word in COMPARISONS))
def _compare(w: Writer, call: Call, given: Given) -> Tile:
    lhs, rhs, word = given["lhs"], given["rhs"], call.op.spec.name
    if isinstance(lhs, Number):
        lhs, rhs, word = rhs, lhs, _MIRRORED.get(word, word)
    shape, a = matrix(call)[0], in_vec(w, lhs)
    b = filled(w, rhs, a.dtype, a)  # `tcmps` packs its bits as no selection reads them
    refuse_meeting(call, (a, b), shape)
    return _compared(w, word, a, b, shape)


def _compared(w: Writer, word: str, a: Tile, b: Tile, shape: tuple[int, int]) -> Tile:
    """Write how two tiles compare, of which one may be a row or a column: bits, or bytes that stand in a column.

    They meet in a type that has the numbers of both, or are compared by themselves where there is none.
    """
    if a.dtype != b.dtype and (dtype := common(a.dtype, b.dtype)) is not None:
        a, b = (in_type(w, each, dtype) for each in (a, b))
    if shape[1] == 1 < shape[0]:
        return _compared_column(w, word, a, b, shape)
    if a.dtype != b.dtype or not takes("tcmp", element(a.dtype), element(UINT8)):
        return bits_of(w, _compared_singly(w, word, a, b, shape))
    valid, room = both(w, a, b), (shape[0], -(-shape[1] // LINE) * LINE)
    first, second = (with_room(w, spread(w, each, shape, valid), room) for each in (a, b))
    bits = w.tile(word, BOOL, shape, valid, is_mask=True, room=room)
    return w.op("tcmp", [first, second], bits, f"{{cmpMode = #pto<cmp {word}>}}")


def _compared_column(w: Writer, word: str, a: Tile, b: Tile, shape: tuple[int, int]) -> Tile:
    """Write how two columns compare, lain down: their bits lie in one row, and each takes a byte of a column."""
    valid = both(w, a, b)
    a, b = (spread(w, each, shape, valid) for each in (a, b))
    room = max(a.room[0], b.room[0]), 1
    first, second = (lain_down(w, with_room(w, each, room)) for each in (a, b))
    row = in_vec(w, _compared(w, word, first, second, first.shape))
    return seen_as(w, row, row.dtype, shape, (row.room[1], 1), valid)


def _compared_singly(w: Writer, word: str, a: Tile, b: Tile, shape: tuple[int, int]) -> Tile:
    """Write how elements compare that no machine compares in tiles, as bytes, one after the other."""
    out, zero = w.tile(word, INT8, shape, both(w, a, b)), w.constant(0)
    with w.counted(out.valid[0], "row") as row, w.counted(out.valid[1], "column") as column:
        pair = [
            element_at(w, each, row if each.shape[0] > 1 else zero, column if each.shape[1] > 1 else zero)
            for each in (a, b)
        ]
        is_so = computed(w, word, pair, BOOL) if a.dtype == b.dtype else _compared_exactly(w, word, *pair)
        set_at(w, out, row, column, converted(w, is_so, INT8))
    return out


def _compared_exactly(w: Writer, word: str, a: Number, b: Number) -> Number:
    """Write how two integers compare that no type holds: one of 64 bits without a sign, and one with a sign."""
    if a.dtype != UINT64:
        return _compared_exactly(w, _MIRRORED.get(word, word), b, a)
    zero = w.constant(0, b.dtype)
    is_below = computed(w, "lt", [b, zero], BOOL)
    other = converted(w, converted(w, computed(w, "max", [b, zero], b.dtype), INT64), UINT64)
    return picked(w, is_below, w.constant(word in ("gt", "ge", "ne"), BOOL), computed(w, word, [a, other], BOOL))


def bits_of(w: Writer, tile: Tile) -> Tile:
    """Write where the elements of a tile are not zero."""
    return _compared(w, "ne", tile, filled(w, w.constant(0, tile.dtype), tile.dtype, tile), tile.shape)


_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


@writes("tile.where")
def _where(w: Writer, call: Call, given: Given) -> Tile:
    mask, sides = given["condition"], (given["x"], given["y"])
    refuse(call, not isinstance(mask, Tile), "by a number")
    mask = mask if mask.is_mask else bits_of(w, mask)
    shape, type_ = matrix(call)
    if mask.shape != shape:
        refuse_meeting(call, (mask,), shape)
        mask = bits_of(w, spread(w, in_vec(w, mask), shape, (w.constant(shape[0]), w.constant(shape[1]))))
    given_sides = [in_type(w, filled(w, side, kept(type_.dtype), mask), type_.dtype) for side in sides]
    refuse_meeting(call, given_sides, shape)
    valid = mask.valid
    for tile in given_sides:
        valid = both(w, replace(mask, valid=valid), tile)
    return _taken(w, mask, [spread(w, side, shape, valid) for side in given_sides], result(w, call, valid))


def _taken(w: Writer, mask: Tile, sides: list[Tile], out: Tile) -> Tile:
    """Write one of two tiles for each element, columns lain down, since bits lie in rows."""
    if mask.is_mask:
        return w.op("tsel", [mask, *sides], out)
    w.op("tsel", [bits_of(w, lain_down(w, mask)), *(lain_down(w, side) for side in sides)], lain_down(w, out))
    return out


# numbers that are none, or too large for one


@writes("tile.isnan")
def _is_nan(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    return _compared(w, "ne", x, x, x.shape)


@writes("tile.isfinite")
def _is_finite(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    if not x.dtype.is_float():
        return _compared(w, "eq", x, x, x.shape)
    zero = w.constant(0.0, x.dtype)
    products = w.op("tmuls", [x, zero], w.tile("nothing", x.dtype, x.shape, x.valid))  # NaN where it is not finite
    return _compared(w, "eq", products, filled(w, zero, x.dtype, x), x.shape)


@writes("tile.isinf")
def _is_infinite(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    if not x.dtype.is_float():
        return _compared(w, "ne", x, x, x.shape)
    ends = (filled(w, w.constant(end, x.dtype), x.dtype, x) for end in (math.inf, -math.inf))
    first, second = (_compared(w, "eq", x, end, x.shape) for end in ends)
    if first.is_mask:
        return w.op("tor", [first, second], w.tile("either", BOOL, x.shape, x.valid, is_mask=True, room=first.room))
    either = w.tile("either", BOOL, x.shape, x.valid)
    w.op("tor", [lain_down(w, first), lain_down(w, second)], lain_down(w, either))
    return either


@writes("tile.sign")
def _sign(w: Writer, call: Call, given: Given) -> Tile:
    """Write one or minus one where elements are more or less than nothing, and elsewhere nothing, or NaN."""
    x = in_vec(w, given["x"])
    sides, zero = [w.constant(value, x.dtype) for value in (1, -1)], w.constant(0, x.dtype)
    made = w.op("tmuls", [x, zero], w.tile("nothing", x.dtype, x.shape, x.valid))
    for word, side in zip(("gt", "lt"), sides, strict=True):
        bits = _compared(w, word, x, filled(w, zero, x.dtype, x), x.shape)
        pair = [filled(w, side, x.dtype, x), made]
        made = _taken(w, bits, pair, w.tile("sign", x.dtype, x.shape, x.valid))
    return made


# bits that are seen as such


@writes("tile.cmp")
def _packed(w: Writer, call: Call, given: Given) -> Tile:
    """Write the bytes of a mask as a tile of their own, those of one matrix after the other where more axes meet."""
    types = [arg.type for arg in call.args]
    shapes = [type_.shape for type_ in types if isinstance(type_, TileType)]
    whole = common_shape(*shapes) or shapes[0]
    if any(meets_more(shape, whole) for shape in shapes):
        return by_matrix(_packed_matrix, w, call, given, _bytes_of_both)
    return _packed_matrix(w, call, given)


def _bytes_of_both(w: Writer, call: Call, given: Given) -> Pair:
    """Return how many rows, and bytes of bits in each, are valid of how two matrices compare."""
    lhs, rhs = given["lhs"], given["rhs"]
    rows, columns = both(w, lhs, rhs) if isinstance(rhs, Tile) else lhs.valid
    return rows, _bytes_for(w, columns)


def _bytes_for(w: Writer, bits: Number) -> Number:
    return computed(w, "floordiv", [computed(w, "add", [bits, w.constant(7)], INDEX), w.constant(8)], INDEX)


def _packed_matrix(w: Writer, call: Call, given: Given) -> Tile:
    lhs, rhs, word = in_vec(w, given["lhs"]), given["rhs"], CmpType(given["cmp_type"]).name.lower()
    other = filled(w, rhs, lhs.dtype, lhs)
    shape = max(lhs.shape[0], other.shape[0]), max(lhs.shape[1], other.shape[1])
    refuse_meeting(call, (lhs, other), shape)
    bits = _compared(w, word, lhs, other, shape)
    rows, cols = matrix(call)[0]
    if not bits.is_mask:
        return _first_bits(w, call, bits)
    refuse(call, cols > bits.room[1], "of so many columns")
    valid = bits.valid[0], _bytes_for(w, bits.valid[1])
    everything = w.constant(bits.room[0]), w.constant(bits.room[1])
    whole = replace(bits, is_mask=False, dtype=UINT8, shape=bits.room, valid=everything)
    return front(w, whole, (rows, cols), valid)


def _first_bits(w: Writer, call: Call, column: Tile) -> Tile:
    """Write how a column compares as the first bits of rows of bytes."""
    out, zero = expanded(w, w.constant(0, UINT8), result(w, call, (column.valid[0], w.constant(1)))), w.constant(0)
    with w.counted(column.valid[0], "row") as row:
        set_at(w, out, row, zero, converted(w, element_at(w, column, row, zero), UINT8))
    return out


def _column_of_bits(w: Writer, words: Tile, like: Tile) -> Tile:
    """Write the first bits of rows of integers as a column of bytes, zero or one."""
    out, zero, one = w.tile("bits", INT8, like.shape, like.valid), w.constant(0), w.constant(1, words.dtype)
    with w.counted(like.valid[0], "row") as row:
        bit = computed(w, "bit_and", [element_at(w, words, row, zero), one], words.dtype)
        set_at(w, out, row, zero, converted(w, bit, INT8))
    return out


@writes("tile.sel")
def _select(w: Writer, call: Call, given: Given) -> Tile:
    return _selected(w, call, given["mask"], given["lhs"], given["rhs"])


@writes("tile.sels")
def _select_number(w: Writer, call: Call, given: Given) -> Tile:
    return _selected(w, call, given["mask"], given["src"], given["scalar"])


def _selected(w: Writer, call: Call, mask: Tile, taken: Tile, other: Tile | Number) -> Tile:
    shape, type_ = matrix(call)
    mask = _as_high(w, call, mask)
    first = in_type(w, in_vec(w, taken), type_.dtype)
    second = in_type(w, filled(w, other, type_.dtype, first), type_.dtype)
    refuse_meeting(call, (first, second), shape)
    valid = both(w, first, second)
    sides = [spread(w, side, shape, valid) for side in (first, second)]
    out = result(w, call, valid)
    is_of_words = not mask.is_mask and not _is_of_conditions(call) and out.is_column
    return _taken(w, _column_of_bits(w, in_vec(w, mask), out) if is_of_words else _bytes(w, call, mask), sides, out)


def _is_of_conditions(call: Call) -> bool:
    return getattr(call.args[0].type, "dtype", None) == BOOL


def _bytes(w: Writer, call: Call, mask: Tile) -> Tile:
    """Return the bits of a mask: what was compared, conditions, or those of integers."""
    if mask.is_mask or _is_of_conditions(call):
        return mask if mask.is_mask else bits_of(w, mask)
    words = in_vec(w, mask)
    room = words.room[0], words.room[1] * words.dtype.get_byte()
    return replace(seen_as(w, words, UINT8, room, room), is_mask=True)


def _as_high(w: Writer, call: Call, mask: Tile) -> Tile:
    """Return a mask with the rows of what is chosen: it may have more along any axis."""
    own, whole = call.args[0].type, matrix(call)[1].shape
    if not isinstance(own, TileType) or own.shape[1:-1] == whole[1:-1]:
        return mask
    return rows_for(w, in_vec(w, mask), own.shape, whole)


def conditions_of(w: Writer, call: Call, mask: Tile, like: Tile) -> Tile:
    """Write the bits of a mask as bytes, zero or one, for each element of a tile."""
    mask = _as_high(w, call, mask)
    if like.is_column and not mask.is_mask and not _is_of_conditions(call):
        return _column_of_bits(w, in_vec(w, mask), like)
    bits = _bytes(w, call, mask)
    return in_vec(w, replace(bits, shape=like.shape, valid=like.valid) if bits.is_mask else bits)


# places of what compares so


@writes("tile.gather_compare")
def _gather_matches(w: Writer, call: Call, given: Given) -> tuple[Tile, Tile]:
    """Write where elements compare so; zeros come after the last place, where PTO leaves what it likes."""
    assert isinstance(call.type, TupleType)
    source, word = in_vec(w, given["src"]), chosen(given["cmp_mode"], COMPARISONS, "cmp_mode")
    number: Number = given["kvalue"]
    if word not in ("eq", "gt") or source.is_column:
        source = _flags(w, word, source, number)
        number, word = w.constant(1, INT32), "eq"
    rows, cols = source.shape[0], given["out_cols"]
    places = _zeros(w, (rows, max(source.shape[1], cols)))
    counts = _zeros(w, (rows, LINE // INT32.get_byte()))
    scratch = w.tile("scratch", source.dtype, source.shape, source.valid)
    types = f"{source.type}, {element(source.dtype)}, {scratch.type}"
    w.line(
        f"pto.tgather ins({source.name}, {number.name}, {scratch.name} : {types})"
        f" outs({places.name}, {counts.name} : {places.type}, {counts.type})"
        f" {{cmpMode = #pto<cmp {word}>, offset = {given['offset']} : i32}}"
    )
    column = front(w, counts, (rows, 1), (source.valid[0], w.constant(1)))
    found = front(w, places, (rows, cols), (source.valid[0], w.constant(cols)))
    line = w.tile("numbers", INT32, (1, cols), (w.constant(1), w.constant(cols)))
    numbers = w.op("tci", [w.constant(0, INT32)], line)
    is_there = _compared(w, "lt", numbers, column, (rows, cols))
    held = w.op("tsel", [is_there, found, _zeros(w, (rows, cols))], w.tile("found", INT32, found.shape, found.valid))
    return held, _row_of_counts(w, column, call.type.elements[1])


def _flags(w: Writer, word: str, source: Tile, number: Number) -> Tile:
    """Write ones where elements compare so, zeros elsewhere."""
    bits = _compared(w, word, source, filled(w, number, source.dtype, source), source.shape)
    one, zero = (filled(w, w.constant(value, INT32), INT32, source) for value in (1, 0))
    return w.op("tsel", [bits, one, zero], w.tile("flags", INT32, source.shape, source.valid))


def _zeros(w: Writer, shape: tuple[int, int]) -> Tile:
    whole = w.constant(shape[0]), w.constant(shape[1])
    return expanded(w, w.constant(0, INT32), w.tile("zeros", INT32, shape, whole))


def _row_of_counts(w: Writer, column: Tile, type_: Type) -> Tile:
    assert isinstance(type_, TileType)
    rows, valid = column.shape[0], (w.constant(1), column.valid[0])
    row = seen_as(w, column, type_.dtype, (1, rows), (1, column.room[0] * column.room[1]), valid)
    return w.op("tmov", [row], w.tile("counts", type_.dtype, (1, rows), valid))
