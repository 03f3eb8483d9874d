"""Ranked: the elements of a line in order, each put where as many stand before it as come before it.

PTO sorts runs of 32 floats and merges runs; to count what comes before an element does for elements of every type.
"""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType
from tilewright.dtypes import BOOL, INDEX, INT32
from tilewright.programs.pto_text.along import Where, along
from tilewright.programs.pto_text.elements import element_at, element_of, set_at
from tilewright.programs.pto_text.scalars import chosen, computed, converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Given, flat, in_vec, result, writes
from tilewright.programs.pto_text.writer import Writer


@writes("tile.sort", "tile.argsort")
def _sort(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    out = result(w, call, x.valid)
    with along(w, call, x, given["axis"]) as (count, where), w.counted(count, "place") as place:
        number = element_at(w, x, *where(place))
        rank = _rank(w, x, where, count, place, given["descending"])
        made = number if call.op.spec.name == "sort" else converted(w, place, out.dtype)
        set_at(w, out, *where(rank), made)
    return out


@writes("tile.row_topk")
def _first(w: Writer, call: Call, given: Given) -> tuple[Tile, Tile]:
    x, k = in_vec(w, given["x"]), w.constant(given["k"])
    assert isinstance(call.type, TupleType)
    types = [type_ for type_ in call.type.elements if isinstance(type_, TileType)]
    best, places = (w.tile("best", each.dtype, flat(each.shape), (x.valid[0], k)) for each in types)
    with along(w, call, x, -1) as (count, where), w.counted(count, "place") as place:
        rank = _rank(w, x, where, count, place, given["largest"])
        with w.block(f"scf.if {computed(w, 'lt', [rank, k], BOOL).name}"):
            set_at(w, best, *where(rank), element_at(w, x, *where(place)))
            set_at(w, places, *where(rank), converted(w, place, places.dtype))
    return best, places


def _rank(w: Writer, x: Tile, where: Where, count: Number, place: Number, is_down: bool) -> Number:
    """Write how many elements of a line come before one of them; of equal ones those that stand before it."""
    held, zero = w.tile("rank", INT32, (1, 1), (w.constant(1), w.constant(1))), w.constant(0)
    set_at(w, held, zero, zero, w.constant(0, INT32))
    own = element_at(w, x, *where(place))
    with w.counted(count, "other") as other:
        number = element_at(w, x, *where(other))
        pair = (own, number) if is_down else (number, own)
        is_late = computed(w, "not_", [_is_less(w, *pair[::-1])], BOOL)
        is_earlier = computed(w, "lt", [other, place], BOOL)
        comes = chosen(w, is_earlier, is_late, _is_less(w, *pair))
        more = converted(w, comes, INT32)
        set_at(w, held, zero, zero, computed(w, "add", [element_of(w, held, zero), more], INT32))
    return converted(w, element_of(w, held, zero), INDEX)


def _is_less(w: Writer, a: Number, b: Number) -> Number:
    """Write whether a number is less than another, which all are than one that is none."""
    is_so = computed(w, "lt", [a, b], BOOL)
    if not a.dtype.is_float():
        return is_so
    is_last = computed(w, "and_", [computed(w, "eq", [a, a], BOOL), computed(w, "ne", [b, b], BOOL)], BOOL)
    return computed(w, "or_", [is_so, is_last], BOOL)
