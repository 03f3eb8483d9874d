"""Elements: what is computed of tiles one element at a time, whatever they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import INT32, DataType
from tilewright.ops.builder import element_of, known, tile_type
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import Extents, static
from tilewright.pto.machine.values import Tile

NARROW = frozenset((dtypes.INT8, dtypes.UINT8, dtypes.UINT16))
"""Integers whose quotients are taken in 32 bits."""


def cast(m: Machine, value: Expr, dtype: DataType, mode: str = "rint") -> Expr:
    """Return a tile's elements in another type."""
    return value if tile_type(value).dtype == dtype else m.b.tile("cast", value, dtype, mode)


def arithmetic(m: Machine, name: str, lhs: Expr, rhs: Expr, precise: bool = False) -> Expr:
    """Return a binary op of two tiles, or of a tile and a number; some are taken in wider integers."""
    dtype = element_of(lhs if isinstance(lhs.type, TileType) else rhs)
    options: dict[str, Any] = {"high_precision": True} if name == "div" and precise else {}
    if name in ("div", "fmod") and dtype in NARROW:
        wide = [widened(m, x) for x in (lhs, rhs)]
        return cast(m, m.b.tile(name, wide[0], wide[1]), dtype)
    if not isinstance(lhs.type, TileType):
        lhs = spread(m, lhs, tile_type(rhs))
    if name == "div" and dtype == dtypes.UINT32:
        return _quotient(m, lhs, rhs if isinstance(rhs.type, TileType) else spread(m, rhs, tile_type(lhs)))
    return m.b.do(f"tile.{name}", lhs=lhs, rhs=rhs, **options)


def _quotient(m: Machine, lhs: Expr, rhs: Expr) -> Expr:
    """Return the quotient of 32-bit numbers without a sign, from that of numbers with one.

    Half of a number has no sign bit. Twice the quotient of that half is the whole one, or one less.
    """
    whole = tile_type(lhs)
    half = cast(m, m.b.tile("shr", lhs, constant(1, dtypes.UINT32)), dtypes.INT32)
    parts = cast(m, m.b.tile("div", half, cast(m, rhs, dtypes.INT32)), dtypes.UINT32)
    low = m.b.tile("mul", parts, constant(2, dtypes.UINT32))
    rest = m.b.tile("sub", lhs, m.b.tile("mul", low, rhs))
    none, one = filled(m, whole, 0), filled(m, whole, 1)
    small = m.b.tile("add", low, where(m, rest, CmpType.GE, rhs, one, none))
    large = where(m, lhs, CmpType.GE, rhs, one, none)
    return where(m, rhs, CmpType.LT, constant(1 << 31, dtypes.UINT32), small, large)


def widened(m: Machine, value: Expr) -> Expr:
    """Return a tile or a number in 32 bits."""
    return cast(m, value, dtypes.INT32) if isinstance(value.type, TileType) else m.b.cast(value, dtypes.INT32)


def spread(m: Machine, number: Expr, like: TileType) -> Expr:
    """Return a tile all of whose elements are a number, as much of it valid as of another."""
    return m.b.tile("expands", filled(m, like, 0), number)


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
