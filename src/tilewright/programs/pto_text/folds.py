"""Folds: rows and columns of elements that no machine folds, one element after the other.

Sums and products of bf16 are doubles on the way, and rounded once, as folds are: by way of the fp32 that machines fold
they would be rounded twice, which makes 1 of 1 + 2**-8 + 2**-40. How other floats are rounded is for a machine to say.
"""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.dtypes import BF16, FP64
from tilewright.programs.pto_text.along import along
from tilewright.programs.pto_text.elements import element_at, element_of, set_at
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Tile
from tilewright.programs.pto_text.words import ALONE, OPS, Given, in_vec, result
from tilewright.programs.pto_text.writer import Writer

_WORDS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _alone(w: Writer, call: Call, given: Given) -> Tile:
    axis, _, word = call.op.spec.name.partition("_")
    x: Tile = in_vec(w, given["x"])
    is_rounded = x.dtype.is_float() and word in ("sum", "prod")
    if is_rounded and x.dtype != BF16:
        made = OPS[call.op.name](w, call, given)  # which the machines refuse
        assert isinstance(made, Tile)
        return made
    zero, one, start = w.constant(0), w.constant(1), call.op.spec.start
    assert start is not None
    out, goes_on = result(w, call, (x.valid[0], one) if axis == "row" else (one, x.valid[1])), _WORDS[word]
    held = w.tile("held", FP64 if is_rounded else x.dtype, (1, 1), (one, one))
    with along(w, call, x, -1 if axis == "row" else -2) as (count, where):
        first = where(zero)
        at = (first[0], zero) if axis == "row" else (zero, first[1])
        set_at(w, held, zero, zero, w.constant(start(out.dtype), held.dtype))
        with w.counted(count, "place") as place:
            number = converted(w, element_at(w, x, *where(place)), held.dtype)
            set_at(w, held, zero, zero, computed(w, goes_on, [element_of(w, held, zero), number], held.dtype))
        set_at(w, out, *at, element_of(w, held, zero))
    return out


ALONE.update({f"tile.row_{word}": _alone for word in _WORDS})
ALONE.update({f"tile.col_{word}": each_matrix(_alone) for word in _WORDS})
