"""Parts: windows of tiles, cut out, and put over others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from math import prod

from tilewright.core.expr import Call
from tilewright.core.types import TileType, is_fully_valid
from tilewright.dtypes import INDEX
from tilewright.programs.pto_text.conversions import in_type
from tilewright.programs.pto_text.elements import element_at, set_at
from tilewright.programs.pto_text.matrices import extents_along
from tilewright.programs.pto_text.rearranged import rearranged
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import (
    Given,
    Pair,
    all_moved,
    as_far_as,
    flat,
    in_vec,
    is_ragged,
    least,
    matrix,
    matrix_of,
    part_of,
    put_over,
    result,
    row_of,
    sizes_of,
    whole_of,
    within,
    writes,
)
from tilewright.programs.pto_text.writer import Writer


@writes("tile.slice")
def _slice(w: Writer, call: Call, given: Given) -> Tile:
    x, shape = in_vec(w, given["x"]), [int(extent.known or 0) for extent in given["shape"]]
    whole, made = call.args[0].type, matrix(call)[1]
    assert isinstance(whole, TileType)
    is_part = not is_fully_valid(whole) or is_ragged(made.shape, sizes_of(made))
    if flat(shape) != matrix(call)[0] or (len(shape) > 2 and is_part):
        return _sliced_elements(w, call, given, (x, whole))
    first = next((axis for axis, extent in enumerate(shape) if extent > 1), len(shape))
    if shape[first + 1 : -1] != [*whole.shape[first + 1 : -1]]:
        return _sliced_matrices(w, call, given, x)
    at = row_of(w, given["offset"], whole.shape), given["offset"][-1]
    sizes = given["valid_shape"] or [w.constant(extent) for extent in shape]
    wanted = matrix_of(w, shape, sizes)
    out = result(w, call, _left(w, x, at, wanted))
    return w.op("tmov", [part_of(w, x, at, flat(shape), out.valid)], out)


def _sliced_elements(w: Writer, call: Call, given: Given, source: tuple[Tile, TileType]) -> Tile:
    """Write a slice that is valid in part along many axes, or has fewer of them, one element after the other."""
    (x, type_), rank = source, len(given["shape"])
    wanted = zip(extents_along(w, x, type_), given["offset"], given["valid_shape"] or given["shape"], strict=True)
    sizes = [within(w, computed(w, "sub", [have, at], INDEX), size) for have, at, size in wanted]
    dropped = {axis % rank for axis in given["drop_dims"] or ()}

    def comes(places: Sequence[Number]) -> list[Number]:
        left = iter(places)
        return [
            at if axis in dropped else computed(w, "add", [at, next(left)], INDEX)
            for axis, at in enumerate(given["offset"])
        ]

    extents = [size for axis, size in enumerate(sizes) if axis not in dropped]
    return rearranged(w, call, x, extents, comes)


def _left(w: Writer, x: Tile, at: Sequence[Number], wanted: Sequence[Number]) -> Pair:
    """Write how much of a part of a tile is valid: nothing where that begins behind what is valid of the tile."""
    sizes = list[Number]()
    for have, start, size in zip(x.valid, at, wanted, strict=True):
        left = computed(w, "sub", [have, start], INDEX)
        sizes.append(least(w, left, size) if start.known == 0 else within(w, left, size))
    rows, columns = sizes
    return rows, columns


def _sliced_matrices(w: Writer, call: Call, given: Given, x: Tile) -> Tile:
    """Write a slice whose rows do not follow each other, a matrix at a time."""
    shape, source = [int(extent.known or 0) for extent in given["shape"]], call.args[0].type
    assert isinstance(source, TileType)
    *_, cols = given["valid_shape"] or [w.constant(extent) for extent in shape]
    out, valid = result(w, call, (w.constant(flat(shape)[0]), cols)), (w.constant(shape[-2]), cols)
    with _each_place(w, shape) as places:
        part = _matrix_at(w, x, _moved(w, given["offset"], places), source.shape, shape, valid)
        w.op("tmov", [part], _matrix_at(w, out, places, shape, shape, valid))
    return out


@writes("tile.extract")
def _extract(w: Writer, call: Call, given: Given) -> Tile:
    """Write a part of a tile; whatever reads it moves it to where it reads."""
    x, shape, at = in_vec(w, given["src"]), matrix(call)[0], (given["index_row"], given["index_col"])
    out = result(w, call, _left(w, x, at, [w.constant(extent) for extent in shape]))
    return w.op("tmov", [part_of(w, x, at, shape, out.valid)], out)


@writes("tile.assemble")
def _assemble(w: Writer, call: Call, given: Given) -> Tile:
    target, source = in_vec(w, given["target"]), in_vec(w, given["source"])
    source = in_type(w, source, target.dtype)
    into, put = (arg.type for arg in call.args[:2])
    assert isinstance(into, TileType) and isinstance(put, TileType)
    extents = _reached(w, call, given, (target, source))
    whole = all_moved(w, target, result(w, call, matrix_of(w, into.shape, extents)))
    if prod(put.shape[:-2]) == 1 and not source.axes:
        put_over(w, whole, source, (row_of(w, given["offset"], into.shape), given["offset"][-1]))
    elif is_fully_valid(put):
        with _each_place(w, put.shape) as places:
            part = _matrix_at(w, source, places, put.shape, put.shape)
            starts = _moved(w, given["offset"], places)
            put_over(w, whole, part, (row_of(w, starts, into.shape), starts[-1]))
    else:
        with w.all_counted(extents_along(w, source, put), "at") as places:
            goes = _moved(w, given["offset"], places)
            number = element_at(w, source, row_of(w, places, put.shape), places[-1])
            set_at(w, whole, row_of(w, goes, into.shape), goes[-1], number)
    return as_far_as(whole, matrix(call)[1], extents)


def _reached(w: Writer, call: Call, given: Given, tiles: tuple[Tile, Tile]) -> list[Number]:
    """Return how far a tile is valid along each axis once another one, if that is any, has been put over it."""
    into, put = (arg.type for arg in call.args[:2])
    assert isinstance(into, TileType) and isinstance(put, TileType)
    held = extents_along(w, tiles[0], into)
    if is_fully_valid(into):
        return held
    one = w.constant(1)
    sizes = [one] * (len(into.shape) - len(put.shape)) + extents_along(w, tiles[1], put)
    some = reduce(lambda a, b: computed(w, "mul", [a, b], INDEX), [least(w, size, one) for size in sizes])
    ends = [computed(w, "add", [at, size], INDEX) for at, size in zip(given["offset"], sizes, strict=True)]
    there = [computed(w, "mul", [end, some], INDEX) for end in ends]
    return [computed(w, "max", [a, b], INDEX) for a, b in zip(held, there, strict=True)]


@contextmanager
def _each_place(w: Writer, shape: Sequence[int]) -> Generator[list[Number]]:
    """Let lines stand in loops over the matrices of a tile; give the place where each begins."""
    with w.all_counted([w.constant(extent) for extent in shape[:-2]], "matrix") as outer:
        yield [*outer, w.constant(0), w.constant(0)]


def _moved(w: Writer, offsets: Sequence[Number], places: Sequence[Number]) -> list[Number]:
    """Return places counted from others, which may have more axes in front."""
    more = len(offsets) - len(places)
    inner = [computed(w, "add", [a, b], INDEX) for a, b in zip(offsets[more:], places, strict=True)]
    return [*offsets[:more], *inner]


def _matrix_at(
    w: Writer,
    tile: Tile,
    places: Sequence[Number],
    whole: Sequence[int],
    shape: Sequence[int],
    valid: Pair | None = None,
) -> Tile:
    """Write a window of a tile: a matrix from some place on."""
    rows, cols = shape[-2:]
    return part_of(w, tile, (row_of(w, places, whole), places[-1]), (rows, cols), valid or whole_of(w, (rows, cols)))
