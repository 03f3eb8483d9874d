"""Folds: rows and columns of elements that no machine folds, one element after the other.

Sums and products of floats are not among them: how they are rounded is for a whole tile to say.
"""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.programs.pto_text.along import along
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Tile
from tilewright.programs.pto_text.words import ALONE, OPS, Given, in_vec, result
from tilewright.programs.pto_text.writer import Writer

_WORDS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _alone(w: Writer, call: Call, given: Given) -> Tile:
    axis, _, word = call.op.spec.name.partition("_")
    x: Tile = in_vec(w, given["x"])
    if x.dtype.is_float() and word in ("sum", "prod"):
        made = OPS[call.op.name](w, call, given)  # which the machines refuse
        assert isinstance(made, Tile)
        return made
    zero, one, start = w.constant(0), w.constant(1), call.op.spec.start
    assert start is not None
    out = result(w, call, (x.valid[0], one) if axis == "row" else (one, x.valid[1]))
    with along(w, call, x, -1 if axis == "row" else -2) as (count, where):
        first = where(zero)
        at = (first[0], zero) if axis == "row" else (zero, first[1])
        set_at(w, out, *at, w.constant(start(out.dtype), out.dtype))
        with w.counted(count, "place") as place:
            number = element_at(w, x, *where(place))
            set_at(w, out, *at, computed(w, _WORDS[word], [element_at(w, out, *at), number], out.dtype))
    return out


ALONE.update({f"tile.row_{word}": _alone for word in _WORDS})
ALONE.update({f"tile.col_{word}": each_matrix(_alone) for word in _WORDS})
