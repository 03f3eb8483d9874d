"""Meeting: tiles beside others of other shapes, rows and columns spread, and buffers of equal extents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilewright.core.expr import Call
from tilewright.dtypes import INT8, DataType
from tilewright.programs.pto_text.elements import element_at, element_of
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import ONE_BY_ONE, Pair, expanded, in_vec, least, refuse
from tilewright.programs.pto_text.writer import Writer


def meets(own: tuple[int, int], shape: tuple[int, int]) -> bool:
    """Return whether a tile is as large as a result, or a row or a column of it."""
    return all(extent in (1, whole) for extent, whole in zip(own, shape, strict=True))


def refuse_meeting(call: Call, tiles: Iterable[Tile], shape: tuple[int, int]) -> None:
    """Raise for tiles that rows and columns alone do not lay over each other."""
    is_so = not all(meets(tile.shape, shape) for tile in tiles)
    refuse(call, is_so, "of tiles that meet along more axes than rows and columns", ONE_BY_ONE)


def spread(w: Writer, tile: Tile, shape: tuple[int, int], valid: Pair) -> Tile:
    """Write a row or a column as often as fills a tile; return one that fills it as it is."""
    if tile.shape == shape:
        return tile
    if tile.shape == (1, 1):
        return expanded(w, element_of(w, tile, w.constant(0)), w.tile("spread", tile.dtype, shape, valid))
    return w.op(f"t{axis_of(tile)}expand", [tile], w.tile("spread", tile.dtype, shape, valid))


def both(w: Writer, a: Tile, b: Tile) -> Pair:
    """Return how much of both is valid, where one of them may be a row or a column of the other."""
    rows, cols = (
        second if own < other else first if other < own or first == second else least(w, first, second)
        for first, second, own, other in zip(a.valid, b.valid, a.shape, b.shape, strict=True)
    )
    return rows, cols


def met_at(w: Writer, operand: Tile | Number, row: Number, column: Number) -> Number:
    """Return what an operand has for a place, which a row or a column has for others, too."""
    if isinstance(operand, Number):
        return operand
    places = (w.constant(0) if extent == 1 else at for extent, at in zip(operand.shape, (row, column), strict=True))
    return element_at(w, operand, *places)


def valid_of_all(w: Writer, tiles: Iterable[Tile], shape: tuple[int, int]) -> Pair:
    """Return how much of a result is valid: as much as of all tiles that meet in it."""
    whole = Tile("", INT8, shape, (w.constant(shape[0]), w.constant(shape[1])))
    for tile in tiles:
        rows, cols = both(w, whole, tile)
        whole = replace(whole, valid=(least(w, whole.valid[0], rows), least(w, whole.valid[1], cols)))
    return whole.valid


def axis_of(tile: Tile) -> str:
    """Return what a line of a tile is spread along, as PTO's ops name it."""
    return "row" if tile.shape[1] == 1 else "col"


def filled(w: Writer, side: Number | Tile, dtype: DataType, like: Tile) -> Tile:
    """Return a tile as it is, a number in all elements of one like another."""
    if isinstance(side, Number):
        return expanded(w, converted(w, side, dtype), w.tile("side", dtype, like.shape, like.valid))
    return in_vec(w, side)
