"""Partial: arithmetic that changes a tile where another one is valid."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX
from tilewright.programs.pto_text.conversions import in_type
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import extents_along
from tilewright.programs.pto_text.meeting import meets, spread
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import (
    ALONE,
    Given,
    as_far_as,
    as_valid,
    by_rows,
    in_vec,
    least,
    matrix,
    result,
    row_of,
    writes,
)
from tilewright.programs.pto_text.writer import NotTakenError, Writer
from tilewright.records import record

_WORDS = ("add", "mul", "max", "min")


@record
class Side:
    """One of the two tiles, with how much of it is valid along each axis of the result."""

    tile: Tile
    shape: tuple[int, ...]
    extents: list[Number]

    def at(self, w: Writer, places: list[Number]) -> Number:
        """Write the element for a place of the result."""
        own = [w.constant(0) if extent == 1 else at for extent, at in zip(self.shape, places, strict=True)]
        return element_at(w, self.tile, row_of(w, own, self.shape), own[-1])


def _sides(w: Writer, call: Call, given: Given) -> tuple[Side, Side]:
    """Return both tiles in the type they meet in: the first that spans an axis says how much of it there is."""
    type_ = matrix(call)[1]
    tiles = [in_type(w, in_vec(w, given[name]), type_.dtype) for name in ("lhs", "rhs")]
    first, second = (_aligned(w, tile, arg.type, type_) for tile, arg in zip(tiles, call.args, strict=False))
    for axis, (own, other) in enumerate(zip(first.shape, second.shape, strict=True)):
        if own == 1 < other:
            first.extents[axis] = second.extents[axis]
        elif other == 1 < own:
            second.extents[axis] = _if_there(w, second.extents[axis], first.extents[axis])
    return first, second


def _aligned(w: Writer, tile: Tile, own: object, whole: TileType) -> Side:
    assert isinstance(own, TileType)
    more = len(whole.shape) - len(own.shape)
    return Side(tile, (1,) * more + (*own.shape,), [w.constant(1)] * more + extents_along(w, tile, own))


def _if_there(w: Writer, one: Number, extent: Number) -> Number:
    """Return an extent, nothing where what is repeated along it is not there."""
    return computed(w, "mul", [one, extent], INDEX)


@writes(*(f"tile.part_{word}" for word in _WORDS))
def _partly(w: Writer, call: Call, given: Given) -> Tile:
    first, second = _sides(w, call, given)
    (shape, type_), (a, b) = matrix(call), (first.tile, second.tile)
    if len(type_.shape) > 2 or not all(meets(tile.shape, shape) for tile in (a, b)):
        raise NotTakenError("rows and columns alone do not say how much is valid")
    rows, columns = [w.constant(1)] * (2 - len(type_.shape)) + first.extents
    valid = rows, columns
    inner = [w.constant(1)] * (2 - len(type_.shape)) + second.extents
    part = least(w, rows, inner[0]), least(w, columns, inner[1])
    a, b = as_valid(w, spread(w, a, shape, valid), valid), as_valid(w, spread(w, b, shape, part), part)
    name = f"tpart{call.op.spec.name.removeprefix('part_')}"
    return by_rows(w, name, [a, b], result(w, call, valid))


def _partly_alone(w: Writer, call: Call, given: Given) -> Tile:
    """Write the first tile, and over it what becomes of each element where the second one is."""
    first, second = _sides(w, call, given)
    type_, word = matrix(call)[1], call.op.spec.name.removeprefix("part_")
    rows = w.constant(1)
    for extent in first.extents[:-1]:
        rows = computed(w, "mul", [rows, extent], INDEX)
    out = result(w, call, (rows, first.extents[-1]))
    with w.all_counted(first.extents, "at") as places:
        set_at(w, out, row_of(w, places, type_.shape), places[-1], first.at(w, places))
    both = [least(w, a, b) for a, b in zip(first.extents, second.extents, strict=True)]
    with w.all_counted(both, "at") as places:
        number = computed(w, word, [first.at(w, places), second.at(w, places)], out.dtype)
        set_at(w, out, row_of(w, places, type_.shape), places[-1], number)
    return as_far_as(out, type_, first.extents)


ALONE.update({f"tile.part_{word}": _partly_alone for word in _WORDS})
