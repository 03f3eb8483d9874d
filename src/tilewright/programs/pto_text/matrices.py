"""Matrices: ops on the last two axes of tiles that have more, one matrix after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce, wraps
from math import prod

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import SCRATCH
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    in_vec,
    is_ragged,
    least,
    part_of,
    put_over,
    result,
    row_of,
    sizes_of,
)
from tilewright.programs.pto_text.writer import Writer

MakesTile = Callable[[Writer, Call, Given], Tile]
"""What says an op that makes one tile."""
Reach = Callable[[Writer, Call, Given], Pair]
"""How many rows and columns are valid of what an op makes of matrices."""
BY_MATRIX: set[object] = set()
"""What says an op on matrices for each of several."""


def extents_along(w: Writer, tile: Tile, type_: TileType) -> list[Number]:
    """Return how much of a tile is valid along each axis."""
    shape = type_.shape[:-1]
    first = next((axis for axis, extent in enumerate(shape) if extent > 1), 0)
    rows = computed(w, "floordiv", [tile.valid[0], w.constant(prod(shape[first + 1 :]))], INDEX)
    plain = [rows if axis == first else w.constant(extent) for axis, extent in enumerate(shape)]
    sizes = [w.constant(size) if size is not None else None for size in sizes_of(type_)]
    found = [*(tile.axes or plain), tile.valid[1]]
    return [size or extent for size, extent in zip(sizes, found, strict=True)]


def least_along(w: Writer, call: Call, given: Given, count: int | None = None) -> list[Number]:
    """Return how much of what an op makes is valid along its first axes, or all: as much as of all that meets in it."""
    type_ = call.type
    assert isinstance(type_, TileType)
    whole = type_.shape
    found = [_aligned(w, given[name], own, len(whole)) for name, own in _types(call, given).items()]
    sizes = [w.constant(size) if size is not None else None for size in sizes_of(type_)]
    return [size or _least(w, found, axis, whole[axis]) for axis, size in enumerate(sizes[:count])]


def _least(w: Writer, found: Sequence[Sequence[tuple[int, Number]]], axis: int, whole: int) -> Number:
    """Return the least that is valid along an axis of all that is as long there, and not repeated."""
    return reduce(lambda a, b: least(w, a, b), [each[axis][1] for each in found if each[axis][0] == whole])


def _aligned(w: Writer, tile: Tile, type_: TileType, rank: int) -> list[tuple[int, Number]]:
    """Return the extents of a tile along axes of something that has as many or more, and how much is valid."""
    more = [(1, w.constant(1))] * (rank - len(type_.shape))
    return [*more, *zip(type_.shape, extents_along(w, tile, type_), strict=True)]


def _types(call: Call, given: Given) -> Mapping[str, TileType]:
    """Return the types of the tiles that an op reads, by the names of its parameters."""
    found = {name: each.type for name, each in arguments(call).items() if isinstance(each, Expr)}
    return {
        name: type_
        for name, type_ in found.items()
        if isinstance(type_, TileType) and isinstance(given[name], Tile) and name not in SCRATCH
    }


def _as_all(w: Writer, call: Call, given: Given) -> Pair:
    """Return as many rows and columns as are valid of all matrices that meet."""
    rows, columns = least_along(w, call, given)[-2:]
    return rows, columns


def each_matrix(function: MakesTile, reach: Reach = _as_all) -> MakesTile:
    """Let what says an op on matrices do so for each of several."""

    @wraps(function)
    def one_by_one(w: Writer, call: Call, given: Given) -> Tile:
        return by_matrix(function, w, call, given, reach) if _several(call) > 1 else function(w, call, given)

    BY_MATRIX.add(one_by_one)
    return one_by_one


def _several(call: Call) -> int:
    """Return how many matrices an op makes, or folds each to a row."""
    return max(prod(type_.shape[:-2]) for each in (call, *call.args) if isinstance(type_ := each.type, TileType))


def by_matrix(function: MakesTile, w: Writer, call: Call, given: Given, reach: Reach = _as_all) -> Tile:
    """Write an op for one matrix after the other, those of axes that are repeated again and again."""
    types, type_ = _types(call, given), call.type
    tiles = {name: in_vec(w, given[name]) for name in types}
    assert isinstance(type_, TileType)
    rank = max(len(each.shape) for each in (type_, *types.values()))
    along = {name: _aligned(w, tiles[name], own, max(rank, 2)) for name, own in types.items()}
    outer = [max(each[axis][0] for each in along.values()) for axis in range(rank - 2)]
    counts = [_least(w, [*along.values()], axis, whole) for axis, whole in enumerate(outer)]
    ones = {name: replace(tiles[name], valid=(each[-2][1], each[-1][1]), axes=()) for name, each in along.items()}
    of_one, (rows, columns) = _of_one(call), _matrix(type_).shape
    valid = reach(w, of_one, {**given, **ones})
    out = result(w, call, (reduce(lambda a, b: computed(w, "mul", [a, b], INDEX), [*counts, valid[0]]), valid[1]))
    zero = w.constant(0)
    with ExitStack() as loops:
        places = [loops.enter_context(w.counted(count, "matrix")) for count in counts]
        parts = {name: _part(w, tiles[name], each, places) for name, each in along.items()}
        made = in_vec(w, function(w, of_one, {**given, **parts}))
        put_over(w, out, made, (row_of(w, [*places, zero, zero], [*outer, rows, columns]), zero))
    return out.along((*counts, valid[0])) if is_ragged(type_.shape, sizes_of(type_)) else out


def _matrix(type_: TileType) -> TileType:
    """Return the type of one matrix of a tile."""
    return replace(type_, shape=(1, 1, *type_.shape)[-2:], valid=(1, 1, *type_.valid)[-2:])


def _of_one(call: Call) -> Call:
    """Return an op as one on matrices."""
    args = (Var("matrix", _matrix(arg.type)) if isinstance(arg.type, TileType) else arg for arg in call.args)
    assert isinstance(call.type, TileType)
    return Call(call.op, (*args,), call.attributes, _matrix(call.type), call.span)


def _part(w: Writer, tile: Tile, along: Sequence[tuple[int, Number]], places: Sequence[Number]) -> Tile:
    """Write a copy of one matrix of a tile, or return the one that it has."""
    shape, valid = [extent for extent, _ in along], (along[-2][1], along[-1][1])
    if prod(shape[:-2]) == 1:
        return tile
    rows, columns = shape[-2:]
    own = [w.constant(0) if extent == 1 else at for extent, at in zip(shape, places, strict=False)]
    start = row_of(w, [*own, w.constant(0), w.constant(0)], shape), w.constant(0)
    part = part_of(w, tile, start, (rows, columns), valid)
    return w.op("tmov", [part], w.tile("matrix", tile.dtype, (rows, columns), valid))
