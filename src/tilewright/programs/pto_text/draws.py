"""Draws: random numbers by seed and place, from the words that PTO mixes for the block of four that each is in."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, FP32, INDEX, INT32, INT64, UINT32
from tilewright.ops.draw import RANGE, SPAN, STREAMS
from tilewright.programs.pto_text.elements import element_at, element_of, set_at
from tilewright.programs.pto_text.rearranged import as_far_as
from tilewright.programs.pto_text.scalars import chosen, computed, converted
from tilewright.programs.pto_text.values import NoPtoError, Number, Tile
from tilewright.programs.pto_text.words import Given, in_vec, matrix, matrix_of, refuse, result, writes
from tilewright.programs.pto_text.writer import Writer

_BLOCK = 4
"""How many words a block has."""


@writes("tile.rand", "tile.randint")
def _draw(w: Writer, call: Call, given: Given) -> Tile:
    counters = None if given["counters"] is None else in_vec(w, given["counters"])
    type_ = matrix(call)[1]
    refuse(call, counters is not None and bool(counters.axes), "by counters that are valid in part along many axes")
    sizes = given["valid_shape"] or [w.constant(extent) for extent in type_.shape]
    out = result(w, call, matrix_of(w, type_.shape, sizes) if counters is None else counters.valid)
    block = w.tile("block", UINT32, (1, _BLOCK), (w.constant(1), w.constant(_BLOCK)))
    with w.counted(out.valid[0], "row") as row, w.counted(out.valid[1], "column") as column:
        if counters is None:
            number = _number(w, call, given, row, column)
        else:
            number = converted(w, element_at(w, counters, row, column), INT64)
        word = _word(w, block, given["seed"], number, STREAMS[call.op.spec.name])
        set_at(w, out, row, column, _uniform(w, word) if out.dtype == FP32 else _whole(w, word, given))
    return out if counters is not None else as_far_as(out, type_, sizes)


def _number(w: Writer, call: Call, given: Given, row: Number, column: Number) -> Number:
    """Write the number of an element."""
    pitch = w.constant(matrix(call)[0][1]) if given["pitch"] is None else given["pitch"]
    start = computed(w, "add", [given["offset"], computed(w, "mul", [row, pitch], INDEX)], INDEX)
    return converted(w, computed(w, "add", [start, column], INDEX), INT64)


def _word(w: Writer, block: Tile, seed: Number, number: Number, stream: int) -> Number:
    """Write the word that an element is drawn from, as a number of 64 bits."""
    key = converted(w, seed, INT64)
    counter = computed(w, "shr", [number, w.constant(2, INT64)], INT64)
    words = [*_halves(w, key), *_halves(w, counter), w.constant(stream, INT32), w.constant(0, INT32)]
    names, types = ", ".join(word.name for word in words), ", ".join(["i32"] * len(words))
    w.line(f"pto.trandom ins({names} {{rounds = 10 : i32}} : {types}) outs({block.name} : {block.type})")
    place = converted(w, computed(w, "bit_and", [number, w.constant(_BLOCK - 1, INT64)], INT64), INDEX)
    return converted(w, element_of(w, block, place), INT64)


def _halves(w: Writer, number: Number) -> list[Number]:
    """Write the lower and the upper word of a number."""
    upper = computed(w, "shr", [number, w.constant(32, INT64)], INT64)
    return [converted(w, half, INT32) for half in (number, upper)]


def _uniform(w: Writer, word: Number) -> Number:
    number = converted(w, computed(w, "shr", [word, w.constant(8, INT64)], INT64), FP32)
    return computed(w, "mul", [number, w.constant(2.0**-24, FP32)], FP32)


def _whole(w: Writer, word: Number, given: Given) -> Number:
    """Write a number of a range, which is that part of a word."""
    low, high = (converted(w, given[name], INT64) for name in ("low", "high"))
    span = computed(w, "sub", [high, low], INT64)
    if low.known is not None and high.known is not None and not 0 < int(high.known) - int(low.known) <= SPAN:
        raise NoPtoError(f"there is no number from {low.known} up to {high.known}", help=RANGE)
    product = w.number("arith.muli", [word, span], INT64, "i64")
    part = w.number("arith.shrui", [product, w.constant(32, INT64)], INT64, "i64")
    scaled = chosen(w, computed(w, "eq", [span, w.constant(SPAN, INT64)], BOOL), word, part)
    return converted(w, computed(w, "add", [scaled, low], INT64), INT32)
