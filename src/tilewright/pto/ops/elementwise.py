"""Elementwise ops: over the valid part of the destination, sources read at the same coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import DataType, finite_limits
from tilewright.pto.machine.build import element_of, known, tile_type
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import cover, read
from tilewright.pto.machine.values import Number, Tile
from tilewright.pto.module import Op, Value
from tilewright.pto.op import declare
from tilewright.pto.ops.rules import reach
from tilewright.pto.text.form import tile

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "maximum", "min": "minimum", "fmod": "fmod",
    "and": "and_", "or": "or_", "xor": "xor", "shl": "shl", "shr": "shr",
}  # fmt: skip
_UNARY = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt", "recip": "recip", "neg": "neg", "abs": "abs",
    "relu": "relu", "not": "not_",
}  # fmt: skip

NARROW = frozenset((dtypes.INT8, dtypes.UINT8, dtypes.UINT16))
"""Integers whose quotients are taken in 32 bits."""


def destination(m: Machine, op: Op) -> Tile:
    """Return the tile an op writes."""
    return m.get(op.outs[0], Tile)


def operand(m: Machine, value: Value, target: Tile) -> Expr:
    """Return an operand over the destination's valid part: elements of a tile, or a number of its element type."""
    found = m.values[value]
    if isinstance(found, Number):
        return m.b.cast(found.expr, target.type.element.dtype)
    source = m.get(value, Tile)
    return read(m, source, target.valid, (target.type.rows, target.type.cols))


def cast(m: Machine, value: Expr, dtype: DataType, mode: str = "rint") -> Expr:
    """Return a tile's elements in another type."""
    return value if tile_type(value).dtype == dtype else m.b.op("tile.cast", x=value, target_type=dtype, mode=mode)


def largest_finite(dtype: DataType) -> float:
    """Return the largest number of a floating-point type that is not infinite."""
    return finite_limits(dtype)[1]


def _is_precise(op: Op) -> bool:
    mode = op.attributes.get("precision_mode", op.attributes.get("precisionType"))
    return getattr(mode, "word", "") == "HIGH_PRECISION"


@declare(
    "pto.tadd tsub tmul tdiv tmax tmin tfmod tand tor tshl tshr",
    tile("tt"),
    rule=reach,
)
@declare(
    "pto.tadds tsubs tmuls tmaxs tmins tfmods tands tors tshls tshrs",
    tile("te"),
    rule=reach,
)
@declare("pto.tdivs", tile("te|et"), rule=reach)
@declare("pto.txor", tile("ttz?"), rule=reach)
@declare("pto.txors", tile("tez?"), rule=reach)
def _binary(m: Machine, op: Op) -> None:
    target = destination(m, op)
    word = op.name.removeprefix("pto.t")
    name = _BINARY.get(word) or _BINARY[word.removesuffix("s")]
    lhs, rhs = (operand(m, v, target) for v in op.ins[:2])
    cover(m, target, arithmetic(m, name, lhs, rhs, precise=_is_precise(op)))


def arithmetic(m: Machine, name: str, lhs: Expr, rhs: Expr, precise: bool = False) -> Expr:
    """Return a binary op of two tiles, or of a tile and a number; some are taken in wider integers."""
    dtype = element_of(lhs if isinstance(lhs.type, TileType) else rhs)
    options: dict[str, Any] = {"high_precision": True} if name == "div" and precise else {}
    if name in ("div", "fmod") and dtype in NARROW:
        wide = [_widened(m, x) for x in (lhs, rhs)]
        return cast(m, m.b.op(f"tile.{name}", lhs=wide[0], rhs=wide[1]), dtype)
    if not isinstance(lhs.type, TileType):
        lhs = spread(m, lhs, tile_type(rhs))
    if name == "div" and dtype == dtypes.UINT32:
        return _quotient(m, lhs, rhs if isinstance(rhs.type, TileType) else spread(m, rhs, tile_type(lhs)))
    return m.b.op(f"tile.{name}", lhs=lhs, rhs=rhs, **options)


def _quotient(m: Machine, lhs: Expr, rhs: Expr) -> Expr:
    """Return the quotient of 32-bit numbers without a sign, from that of numbers with one.

    Half of a number has no sign bit. Twice the quotient of that half is the whole one, or one less.
    """
    whole = tile_type(lhs)
    half = cast(m, m.b.op("tile.shr", lhs=lhs, rhs=constant(1, dtypes.UINT32)), dtypes.INT32)
    parts = cast(m, m.b.op("tile.div", lhs=half, rhs=cast(m, rhs, dtypes.INT32)), dtypes.UINT32)
    low = m.b.op("tile.mul", lhs=parts, rhs=constant(2, dtypes.UINT32))
    rest = m.b.op("tile.sub", lhs=lhs, rhs=m.b.op("tile.mul", lhs=low, rhs=rhs))
    none, one = filled(m, whole, 0), filled(m, whole, 1)
    small = m.b.op("tile.add", lhs=low, rhs=where(m, rest, CmpType.GE, rhs, one, none))
    large = where(m, lhs, CmpType.GE, rhs, one, none)
    return where(m, rhs, CmpType.LT, constant(1 << 31, dtypes.UINT32), small, large)


def _widened(m: Machine, value: Expr) -> Expr:
    return cast(m, value, dtypes.INT32) if isinstance(value.type, TileType) else m.b.cast(value, dtypes.INT32)


def spread(m: Machine, number: Expr, like: TileType) -> Expr:
    """Return a tile all of whose elements are a number, as much of it valid as of another."""
    return m.b.op("tile.expands", target=filled(m, like, 0), scalar=number)


def filled(m: Machine, like: TileType, value: float) -> Expr:
    """Return a constant tile of another's shape and element type."""
    return m.b.op("tile.full", shape=like.shape, dtype=like.dtype, value=constant(value, like.dtype))


@declare("pto.texp tlog tsqrt trecip tneg tabs trelu tnot", tile("t"), rule=reach)
@declare("pto.trsqrt", tile("tz?"), rule=reach)
def _unary(m: Machine, op: Op) -> None:
    target = destination(m, op)
    name = _UNARY[op.name.removeprefix("pto.t")]
    cover(m, target, m.b.op(f"tile.{name}", x=operand(m, op.ins[0], target)))


@declare("pto.tlrelu", tile("ts"), rule=reach)
def _leaky(m: Machine, op: Op) -> None:
    target = destination(m, op)
    lhs, rhs = (operand(m, v, target) for v in op.ins[:2])
    cover(m, target, m.b.op("tile.lrelu", lhs=lhs, rhs=rhs))


@declare("pto.tprelu", tile("ttz?"), rule=reach)
def _parametric(m: Machine, op: Op) -> None:
    target = destination(m, op)
    x, slope = (operand(m, v, target) for v in op.ins[:2])
    cover(m, target, where(m, x, CmpType.GT, constant(0.0), x, m.b.op("tile.mul", lhs=x, rhs=slope)))


def where(m: Machine, lhs: Expr, how: CmpType, rhs: Expr, then: Expr, other: Expr) -> Expr:
    """Return elements of `then` where a comparison holds, of `other` elsewhere."""
    mask = m.b.op("tile.cmp", lhs=lhs, rhs=rhs, cmp_type=int(how))
    return m.b.op("tile.sel", mask=mask, lhs=then, rhs=other)


@declare("pto.trem", tile("ttz?"), rule=reach)
@declare("pto.trems", tile("tez?"), rule=reach)
def _remainder(m: Machine, op: Op) -> None:
    """The remainder with the sign of the divisor; of a float and a number it keeps the dividend's."""
    target = destination(m, op)
    lhs, rhs = (operand(m, v, target) for v in op.ins[:2])
    rest = arithmetic(m, "fmod", lhs, rhs)
    if op.name == "pto.trems" and target.type.element.is_float:
        cover(m, target, rest)
        return
    dtype = target.type.element.dtype
    wide = rest if dtype.is_float() else cast(m, rest, dtypes.INT32)
    divisor = rhs if dtype.is_float() else _widened(m, rhs)
    sign = m.b.op("tile.mul", lhs=_sign(m, wide), rhs=_sign_of(m, divisor))
    moved = m.b.op("tile.add", lhs=wide, rhs=divisor)
    zero = constant(0, dtype if dtype.is_float() else dtypes.INT32)
    cover(m, target, cast(m, where(m, sign, CmpType.LT, zero, moved, wide), dtype))


def _sign(m: Machine, value: Expr) -> Expr:
    """Return -1, 0 or 1 for each element."""
    low = m.b.op("tile.maximum", lhs=value, rhs=constant(-1))
    type_ = tile_type(value)
    if type_.dtype.is_float():
        ones, minus = filled(m, type_, 1), filled(m, type_, -1)
        down = where(m, value, CmpType.LT, constant(0.0), minus, filled(m, type_, 0))
        return where(m, value, CmpType.GT, constant(0.0), ones, down)
    return m.b.op("tile.minimum", lhs=low, rhs=constant(1))


def _sign_of(m: Machine, value: Expr) -> Expr:
    if isinstance(value.type, TileType):
        return _sign(m, value)
    dtype = element_of(value)
    zero = constant(0, dtype)
    up, down = m.b.scalar("gt", value, zero), m.b.scalar("lt", value, zero)
    return m.b.scalar("sub", _number(m, up, dtype), _number(m, down, dtype))


def _number(m: Machine, condition: Expr, dtype: DataType) -> Expr:
    return m.b.cast(m.b.cast(condition, dtypes.INT32), dtype)


@declare("pto.taxpy", tile("zs", "z"), rule=reach)
def _axpy(m: Machine, op: Op) -> None:
    target = destination(m, op)
    source, scale = op.ins[:2]
    x = read(m, m.get(source, Tile), target.valid, (target.type.rows, target.type.cols))
    x = cast(m, x, target.type.element.dtype)
    factor = m.b.cast(m.expr(scale), target.type.element.dtype)
    old = operand(m, op.outs[0], target)
    cover(m, target, m.b.op("tile.add", lhs=old, rhs=m.b.op("tile.mul", lhs=x, rhs=factor)))


@declare("pto.taddc tsubc", tile("ttt"), rule=reach)
@declare("pto.taddsc tsubsc", tile("tet"), rule=reach)
def _chain(m: Machine, op: Op) -> None:
    target = destination(m, op)
    a, b, c = (operand(m, v, target) for v in op.ins[:3])
    met = m.b.op("tile.add" if op.name.startswith("pto.tadd") else "tile.sub", lhs=a, rhs=b)
    cover(m, target, m.b.op("tile.add", lhs=met, rhs=c))


@declare("pto.texpands", tile("e"))
def _expand_number(m: Machine, op: Op) -> None:
    target = destination(m, op)
    cover(m, target, constant_tile(m, target, m.b.cast(m.expr(op.ins[0]), target.type.element.dtype)))


def constant_tile(m: Machine, target: Tile, number: Expr) -> Expr:
    """Return a tile of one number, valid where a destination is."""
    return resized(
        m, lambda shape: m.b.op("tile.full", shape=shape, dtype=target.type.element.dtype, value=number), target
    )


def resized(m: Machine, make: Callable[[tuple[int, int]], Expr], target: Tile) -> Expr:
    """Return a made tile, cut to the valid part of a destination."""
    rows, cols = (known(extent) for extent in target.valid)
    whole = make((target.type.rows if rows is None else rows, target.type.cols if cols is None else cols))
    if rows is not None and cols is not None:
        return whole
    return m.b.op("tile.set_validshape", x=whole, valid_rows=target.valid[0], valid_cols=target.valid[1])
