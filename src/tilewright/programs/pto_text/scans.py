"""Scans: along an axis, what all elements up to each one fold to, one element after the other.

What goes on from element to element is a number of its own, a double where floats are added or multiplied.
"""

from __future__ import annotations

from tilewright import dtypes as dt
from tilewright.core.expr import Call
from tilewright.dtypes import DataType
from tilewright.programs.pto_text.along import along
from tilewright.programs.pto_text.elements import element_at, element_of, set_at
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Given, in_vec, last_of, matrix, result, writes
from tilewright.programs.pto_text.writer import Writer

_WORDS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}


@writes(*(f"tile.{name}" for name in _WORDS))
def _scan(w: Writer, call: Call, given: Given) -> Tile:
    x, word = in_vec(w, given["x"]), _WORDS[call.op.spec.name]
    out, carried = result(w, call, x.valid), _carried(matrix(call)[1].dtype, word)
    start = call.op.spec.start
    assert start is not None
    held, zero = w.tile("held", carried, (1, 1), (w.constant(1), w.constant(1))), w.constant(0)
    with along(w, call, x, given["axis"]) as (count, where):
        set_at(w, held, zero, zero, w.constant(start(carried), carried))
        with w.counted(count, "place") as place:
            at = where(_from_end(w, count, place) if given["reverse"] else place)
            number = converted(w, element_at(w, x, *at), carried)
            found = computed(w, word, [element_of(w, held, zero), number], carried)
            set_at(w, held, zero, zero, found)
            set_at(w, out, *at, found)
    return out


def _carried(dtype: DataType, word: str) -> DataType:
    """Return what goes on from element to element of a scan."""
    return dt.FP64 if dtype.is_float() and word in ("add", "mul") else dtype


def _from_end(w: Writer, count: Number, place: Number) -> Number:
    return computed(w, "sub", [last_of(w, count), place], dt.INDEX)
