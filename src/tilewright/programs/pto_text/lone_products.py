"""Lone products: matrices of integers that the cube does not multiply, one element after the other.

Those of floats are not among them: how their sums are rounded is for the cube to say.
"""

from __future__ import annotations

from functools import partial

from tilewright.core.expr import Call
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import each_matrix
from tilewright.programs.pto_text.products import BIASED, PLAIN, reach_of
from tilewright.programs.pto_text.scalars import chosen, computed, converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import ALONE, OPS, Given, in_vec, least, result
from tilewright.programs.pto_text.writer import Writer


@partial(each_matrix, reach=reach_of)
def _alone(w: Writer, call: Call, given: Given) -> Tile:
    a, b = (in_vec(w, given[name]) for name in ("lhs", "rhs"))
    if a.dtype.is_float():
        made = OPS[call.op.name](w, call, given)  # which the machines refuse
        assert isinstance(made, Tile)
        return made
    a_turned, b_turned = bool(given.get("a_trans")), bool(given.get("b_trans"))
    rows, inner = a.valid[::-1] if a_turned else a.valid
    cols = b.valid[0] if b_turned else b.valid[1]
    before = _before(w, given)
    if "acc" in given and before is not None:
        rows, cols = least(w, rows, before.valid[0]), least(w, cols, before.valid[1])
    out = result(w, call, (rows, cols))
    with w.counted(rows, "row") as row, w.counted(cols, "column") as column:
        set_at(w, out, row, column, _start(w, given, before, out, (row, column)))
        with w.counted(inner, "place") as place:
            left = element_at(w, a, *((place, row) if a_turned else (row, place)))
            right = element_at(w, b, *((column, place) if b_turned else (place, column)))
            product = computed(w, "mul", [converted(w, each, out.dtype) for each in (left, right)], out.dtype)
            set_at(w, out, row, column, computed(w, "add", [element_at(w, out, row, column), product], out.dtype))
    return out


def _before(w: Writer, given: Given) -> Tile | None:
    """Return what a product is added to: a matrix, a row, or nothing."""
    tile = next((given[name] for name in ("acc", "bias") if given.get(name) is not None), None)
    return None if tile is None else in_vec(w, tile)


def _start(w: Writer, given: Given, before: Tile | None, out: Tile, at: tuple[Number, Number]) -> Number:
    """Write what the sum of an element begins with."""
    zero, (row, column), first = w.constant(0, out.dtype), at, given.get("init_cond")
    if before is None:
        return zero
    there = converted(w, element_at(w, before, w.constant(0) if "bias" in given else row, column), out.dtype)
    return there if first is None else chosen(w, first, zero, there)


ALONE.update({f"tile.{name}": _alone for name in (*PLAIN, *BIASED)})
