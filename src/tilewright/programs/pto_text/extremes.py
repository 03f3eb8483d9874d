"""Extremes: where in its row or column the largest or smallest element is."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import BF16, BOOL, FP32, INDEX, INT8, INT16, INT32, UINT8
from tilewright.programs.pto_text.along import along
from tilewright.programs.pto_text.conversions import in_type
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.scalars import chosen, computed, converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import ALONE, Given, in_vec, matrix, refuse, result, writes
from tilewright.programs.pto_text.writer import NotTakenError, Writer

_PLACES = tuple(f"tile.{axis}_arg{word}" for axis in ("row", "col") for word in ("max", "min"))


@writes(*_PLACES)
@each_matrix
def _place(w: Writer, call: Call, given: Given) -> Tile:
    x, one = in_vec(w, given["x"]), w.constant(1)
    axis, _, word = call.op.spec.name.partition("_")
    refuse(call, matrix(call)[1].dtype != INT32, "in other than 32 bits")
    if x.is_column:
        raise NotTakenError("no machine finds places in columns")
    if axis == "row" and x.dtype in _LOOKED_THROUGH_AS:
        x = in_type(w, x, _LOOKED_THROUGH_AS[x.dtype])
    valid = (x.valid[0], one) if axis == "row" else (one, x.valid[1])
    return w.op(f"t{axis}{word}", [x], result(w, call, valid))


_LOOKED_THROUGH_AS = {BF16: FP32, INT8: INT16, UINT8: INT16}
"""Elements along whose rows no machine finds a place, and those that have the same order."""


@each_matrix
def _place_alone(w: Writer, call: Call, given: Given) -> Tile:
    """Write the places of extremes of 64 bits, by going along: of what is no number, the first counts."""
    x, zero, one = in_vec(w, given["x"]), w.constant(0), w.constant(1)
    axis, _, word = call.op.spec.name.partition("_arg")
    out = result(w, call, (x.valid[0], one) if axis == "row" else (one, x.valid[1]))
    with along(w, call, x, -1 if axis == "row" else -2) as (count, where):
        first = where(zero)
        at = (first[0], zero) if axis == "row" else (zero, first[1])
        set_at(w, out, *at, w.constant(0, out.dtype))
        with w.counted(count, "place") as place:
            found = element_at(w, out, *at)
            best, new = (element_at(w, x, *where(each)) for each in (converted(w, found, INDEX), place))
            goes_on = _goes_before(w, "gt" if word == "max" else "lt", new, best)
            set_at(w, out, *at, chosen(w, goes_on, converted(w, place, out.dtype), found))
    return out


def _goes_before(w: Writer, word: str, new: Number, best: Number) -> Number:
    """Write whether an element goes before the best of those before it."""
    is_better = computed(w, word, [new, best], BOOL)
    if not new.dtype.is_float():
        return is_better
    is_none, was_none = (computed(w, "ne", [each, each], BOOL) for each in (new, best))
    return chosen(w, was_none, w.constant(False, BOOL), chosen(w, is_none, w.constant(True, BOOL), is_better))


ALONE.update(dict.fromkeys(_PLACES, _place_alone))
