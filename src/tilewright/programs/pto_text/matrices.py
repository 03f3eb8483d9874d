"""Matrices: ops on the last two axes of tiles that have more, one matrix after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from math import prod

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import (
    ONE_BY_ONE,
    Given,
    in_vec,
    part_of,
    put_over,
    refuse,
    result,
)
from tilewright.programs.pto_text.writer import Writer

MakesTile = Callable[[Writer, Call, Given], Tile]
"""What says an op that makes one tile."""


def each_matrix(function: MakesTile) -> MakesTile:
    """Let what says an op on matrices do so for each of several."""

    @wraps(function)
    def one_by_one(w: Writer, call: Call, given: Given) -> Tile:
        return _looped(function, w, call, given) if _several(call) > 1 else function(w, call, given)

    return one_by_one


def _several(call: Call) -> int:
    """Return how many matrices an op makes, or folds each to a row."""
    return max(prod(type_.shape[:-2]) for each in (call, *call.args) if isinstance(type_ := each.type, TileType))


def _looped(function: MakesTile, w: Writer, call: Call, given: Given) -> Tile:
    tiles = {name: in_vec(w, each) for name, each in given.items() if isinstance(each, Tile)}
    types = {name: each.type for name, each in arguments(call).items() if isinstance(each, Expr)}
    assert isinstance(call.type, TileType)
    of_one = {name: type_ for name, type_ in types.items() if isinstance(type_, TileType) and name in tiles}
    for type_ in (call.type, *of_one.values()):
        refuse(call, type_.valid[1:] != type_.shape[1:], "of tiles that are valid in part along more", ONE_BY_ONE)
    lone = [prod(type_.shape[:-2]) not in (1, _several(call)) for type_ in of_one.values()]
    refuse(call, any(lone), "of several matrices that meet several others", ONE_BY_ONE)
    counts = [_count(w, tiles[name], type_) for name, type_ in of_one.items() if prod(type_.shape[:-2]) > 1]
    rows, cols = _matrix(call.type).shape
    out = result(w, call, (computed(w, "mul", [counts[0], w.constant(rows)], INDEX), w.constant(cols)))
    with w.counted(counts[0], "matrix") as number:
        parts = {name: _part(w, tile, of_one[name], number) for name, tile in tiles.items()}
        made = function(w, _of_one(call), {**given, **parts})
        put_over(w, out, in_vec(w, made), (computed(w, "mul", [number, w.constant(rows)], INDEX), w.constant(0)))
    return out


def _matrix(type_: TileType) -> TileType:
    """Return the type of one matrix of a tile, valid altogether."""
    shape = (1, 1, *type_.shape)[-2:]
    return replace(type_, shape=shape, valid=shape)


def _of_one(call: Call) -> Call:
    """Return an op as one on matrices."""
    args = (Var("matrix", _matrix(arg.type)) if isinstance(arg.type, TileType) else arg for arg in call.args)
    assert isinstance(call.type, TileType)
    return Call(call.op, (*args,), call.attributes, _matrix(call.type), call.span)


def _count(w: Writer, tile: Tile, type_: TileType) -> Number:
    """Return how many matrices of a tile are valid."""
    return computed(w, "floordiv", [tile.valid[0], w.constant(type_.shape[-2])], INDEX)


def _part(w: Writer, tile: Tile, type_: TileType, number: Number) -> Tile:
    """Write a copy of one matrix of a tile, or return the one that it has."""
    if prod(type_.shape[:-2]) == 1:
        return tile
    shape = _matrix(type_).shape
    rows, cols = shape
    start, whole = computed(w, "mul", [number, w.constant(rows)], INDEX), (w.constant(rows), w.constant(cols))
    part = part_of(w, tile, (start, w.constant(0)), (rows, cols), whole)
    return w.op("tmov", [part], w.tile("matrix", tile.dtype, (rows, cols), whole))
