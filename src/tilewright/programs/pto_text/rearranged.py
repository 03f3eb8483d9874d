"""Rearranged: the elements of a tile each put to another place, along any of its axes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod

from tilewright.arrays import np
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX
from tilewright.programs.pto_text.elements import element_at, lines, same, set_at, stepped, times
from tilewright.programs.pto_text.matrices import extents_along
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import (
    Given,
    as_far_as,
    flat,
    in_vec,
    last_of,
    matrix,
    matrix_of,
    result,
    row_of,
    writes,
)
from tilewright.programs.pto_text.writer import Writer

Comes = Callable[[Sequence[Number]], Sequence[Number]]
"""Which place of an op's first tile the element for a place of its result comes from."""


def rearranged(w: Writer, call: Call, x: Tile, extents: Sequence[Number], comes: Comes) -> Tile:
    """Write what an op takes from its first tile, one element after the other, as far as `extents` along each axis."""
    type_, source = matrix(call)[1], _source(call)
    out = result(w, call, matrix_of(w, type_.shape, extents))
    with w.all_counted(extents, "at") as go:
        come = comes(go)
        set_at(w, out, row_of(w, go, type_.shape), go[-1], element_at(w, x, row_of(w, come, source.shape), come[-1]))
    return as_far_as(out, type_, extents)


@writes("tile.flip")
def _flip(w: Writer, call: Call, given: Given) -> Tile:
    x, rank = in_vec(w, given["x"]), len(matrix(call)[1].shape)
    axes: Sequence[int] = range(rank) if given["axis"] is None else np.atleast_1d(given["axis"]).tolist()
    flipped = {axis % rank for axis in axes}
    if not all(_has_lines(call, x, axis) for axis in flipped):
        return _turned_round(w, call, x, flipped)
    for place in flipped:
        count, size = _counted(w, call, x, place)
        last = last_of(w, count)
        out = result(w, call, x.valid)
        lines(w, x, out, count, (lambda turn, last=last: computed(w, "sub", [last, turn], INDEX), same), size)
        x = out
    return x


def _turned_round(w: Writer, call: Call, x: Tile, axes: Collection[int]) -> Tile:
    """Write each element to where it is once axes run the other way."""
    extents = extents_along(w, x, _source(call))
    lasts = {axis: last_of(w, extents[axis]) for axis in axes}

    def comes(places: Sequence[Number]) -> list[Number]:
        return [computed(w, "sub", [lasts[axis], at], INDEX) if axis in lasts else at for axis, at in enumerate(places)]

    return rearranged(w, call, x, extents, comes)


@writes("tile.strided")
def _strided(w: Writer, call: Call, given: Given) -> Tile:
    x, steps = in_vec(w, given["x"]), [*given["steps"]]
    if not all(_has_lines(call, x, axis) for axis, step in enumerate(steps) if step != 1):
        pairs = zip(extents_along(w, x, _source(call)), steps, strict=True)
        extents = [_stepped_over(w, extent, step) for extent, step in pairs]
        return rearranged(
            w, call, x, extents, lambda at: [times(w, n, step) for n, step in zip(at, steps, strict=True)]
        )
    shape = [*_source(call).shape]
    for place, step in enumerate(steps):
        if step == 1:
            continue
        count, size = _counted(w, call, x, place)
        shape[place] = -(-shape[place] // step)
        count = _stepped_over(w, count, step)
        valid = (x.valid[0], count) if size is None else (times(w, count, size), x.valid[1])
        out = w.tile("every", x.dtype, flat(shape), valid)
        lines(w, x, out, count, (stepped(w, 0, step), same), size)
        x = out
    return x


def _stepped_over(w: Writer, count: Number, step: int) -> Number:
    """Write how many elements there are, so many steps from one to the next."""
    more = computed(w, "add", [count, w.constant(step - 1)], INDEX)
    return computed(w, "floordiv", [more, w.constant(step)], INDEX)


def _source(call: Call) -> TileType:
    type_ = call.args[0].type
    assert isinstance(type_, TileType)
    return type_


def _has_lines(call: Call, x: Tile, axis: int) -> bool:
    """Return whether an axis has whole rows or columns one after the other."""
    shape = _source(call).shape
    return not x.axes and (axis == len(shape) - 1 or prod(shape[:axis]) == 1)


def _counted(w: Writer, call: Call, x: Tile, axis: int) -> tuple[Number, int | None]:
    """Return how many lines an axis has, and the rows of each, None of columns."""
    shape = _source(call).shape
    if axis == len(shape) - 1:
        return x.valid[1], None
    size = prod(shape[axis + 1 : -1])
    return computed(w, "floordiv", [x.valid[0], w.constant(size)], INDEX), size
