"""Kept axes: an integer index leaves a tile at least two axes, `t[:, 0]` being a column, and where that would mislead.

NumPy's `t.sum(1) * t[:, 0]` multiplies row by row. A vector and a column would broadcast to a matrix instead, and so
would a row and a column that two indices left: such operands are refused. A column that a slice names, `t[:, 0:1]`, is
one.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from tilewright.core.expr import Call, Expr, Var
from tilewright.core.types import TileType
from tilewright.errors import ShapeMismatchError
from tilewright.frontend.state import Kept, Translation
from tilewright.frontend.walk.walker import Value

_ELEMENTWISE = ("elementwise", "expansion", "mapped")


def note_kept(t: Translation, value: Expr, dropped: Collection[int], node: ast.Subscript) -> None:
    """Remember which axes of a tile an integer index would have dropped elsewhere; they are counted from the end."""
    assert isinstance(value.type, TileType)
    axes = frozenset(axis - len(value.type.shape) for axis in dropped)
    t.kept[id(value)] = Kept(value, axes, ast.unparse(node))


def check_meeting(t: Translation, result: Expr, bound: Mapping[str, Value], node: ast.AST) -> None:
    """Raise where a column that an index left meets a vector, or a row that another index left."""
    if not t.kept or not isinstance(result, Call) or result.op.spec.family not in _ELEMENTWISE:
        return
    tiles = [value for value in bound.values() if isinstance(value, Expr) and isinstance(value.type, TileType)]
    columns = [
        found for tile in tiles if _extents(tile)[-1] == 1 for found in [_kept(t, tile, -1)] if found is not None
    ]
    for other in tiles if columns else ():
        shape = _extents(other)
        if shape[-1] > 1 and (len(shape) == 1 or _kept(t, other, -2) is not None):
            text = columns[0].text
            message = (
                f"`{text}` keeps its axis and is {columns[0].value.type}: with {other.type} it makes {result.type}"
            )
            vector = f"pl.reshape({text}, [{_extents(columns[0].value)[-2]}]) is a vector"
            help = f"{vector}; sums with keepdims=True are columns, and `i : i + 1` for an index asks for one"
            raise t.error(ShapeMismatchError, node, message, help=help)


def is_kept_column(t: Translation, tile: Expr) -> bool:
    """Return whether an index left a column where NumPy has a vector."""
    return isinstance(tile.type, TileType) and tile.type.shape[-1] == 1 and _kept(t, tile, -1) is not None


def kept_axes(t: Translation, tile: Expr) -> frozenset[int]:
    """Return the axes of a tile that indices left it and NumPy's would not have, counted from the end."""
    return frozenset(axis for axis in range(-len(_extents(tile)), 0) if _kept(t, tile, axis) is not None)


def _extents(tile: Expr) -> tuple[int, ...]:
    assert isinstance(tile.type, TileType)
    return tile.type.shape


def _kept(t: Translation, tile: Expr, axis: int) -> Kept | None:
    """Return the index that left a tile one element along an axis, through whatever was made of its elements."""
    found = (t.kept.get(id(each)) for each in _made_of(t, tile, set()))
    return next((kept for kept in found if kept is not None and axis in kept.axes), None)


def _made_of(t: Translation, value: Expr, seen: set[int]) -> Iterator[Expr]:
    """Yield a tile, and the tiles of its shape whose elements its own were made of."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, Var) and value in t.assigned:
        yield from _made_of(t, t.assigned[value], seen)
    elif isinstance(value, Call) and (value.op.spec.family in _ELEMENTWISE or value.op.spec.name == "cast"):
        for arg in value.args:
            if isinstance(arg.type, TileType) and arg.type.shape == _extents(value):
                yield from _made_of(t, arg, seen)
