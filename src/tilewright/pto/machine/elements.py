"""Elements: what is computed of tiles one element at a time, whatever they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import INT32, DataType
from tilewright.ops.builder import known, tile_type
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import Extents, static
from tilewright.pto.machine.values import Tile


def cast(m: Machine, value: Expr, dtype: DataType, mode: str = "rint") -> Expr:
    """Return a tile's elements in another type."""
    return value if tile_type(value).dtype == dtype else m.b.tile("cast", value, dtype, mode)


def arithmetic(m: Machine, name: str, lhs: Expr, rhs: Expr, precise: bool = False) -> Expr:
    """Return a binary op of two tiles, or of a tile and a number."""
    options: dict[str, Any] = {"high_precision": True} if name == "div" and precise else {}
    if not isinstance(lhs.type, TileType):
        lhs = m.b.tile("expands", rhs, lhs)  # as much of it valid as of the other
    return m.b.do(f"tile.{name}", lhs=lhs, rhs=rhs, **options)


def filled(m: Machine, like: TileType, value: float) -> Expr:
    """Return a constant tile of another's shape and element type."""
    return m.b.tile("full", like.shape, like.dtype, constant(value, like.dtype))


def where(m: Machine, lhs: Expr, how: CmpType, rhs: Expr, then: Expr, other: Expr) -> Expr:
    """Return elements of `then` where a comparison holds, of `other` elsewhere."""
    mask = m.b.tile("cmp", lhs, rhs, int(how))
    return m.b.tile("sel", mask, then, other)


def constant_tile(m: Machine, target: Tile, number: Expr) -> Expr:
    """Return a tile of one number, valid where a destination is."""
    return resized(m, lambda shape: m.b.tile("full", shape, target.type.element.dtype, number), target)


def resized(m: Machine, make: Callable[[tuple[int, int]], Expr], target: Tile) -> Expr:
    """Return a made tile, cut to the valid part of a destination."""
    return cut(m, make(static(target.valid, target.limits)), target.valid)


def cut(m: Machine, whole: Expr, valid: Extents) -> Expr:
    """Return a whole tile with no more valid than some rows and columns."""
    return whole if None not in map(known, valid) else m.b.tile("set_validshape", whole, valid[0], valid[1])


def columns(m: Machine, count: int) -> Expr:
    """Return the row 0, 1, 2, ..."""
    start = constant(0, INT32)
    return m.b.tile("ci", start, (1, count)) if count > 1 else m.b.tile("full", (1, 1), INT32, start)


def over_columns(m: Machine, shape: Sequence[int]) -> Expr:
    """Return a tile that holds the column of each of its elements."""
    blank = m.b.tile("full", shape, INT32, constant(0, INT32))
    return m.b.tile("col_expand", blank, columns(m, shape[1]))


def over_rows(m: Machine, shape: Sequence[int]) -> Expr:
    """Return a tile that holds the row of each of its elements."""
    blank = m.b.tile("full", shape, INT32, constant(0, INT32))
    return m.b.tile("row_expand", blank, m.b.tile("reshape", columns(m, shape[0]), (shape[0], 1)))
