"""Conversions: `tcvt`, whose rounding, wrapping and clamping depend on the pair of types."""

from __future__ import annotations

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import INT32, INT64, DataType
from tilewright.errors import AttributeValueError
from tilewright.pto.machine.elements import largest_finite, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import destination
from tilewright.pto.machine.tiles import cover, read
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Attribute, Enumerated, Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import tile

MODES = {
    "NONE": "rint", "RINT": "rint", "CAST_RINT": "rint", "ROUND": "round", "FLOOR": "floor", "CEIL": "ceil",
    "TRUNC": "trunc", "ODD": "odd",
}  # fmt: skip
_WRAPS = frozenset(
    [("fp16", "uint8"), ("fp16", "int8"), ("fp16", "int16"), ("fp32", "int16"), ("int64", "int32"), ("int32", "int16")]
)
"""The pairs whose overflow is cut off unless asked otherwise; all others stop at the limits."""

WHOLE = float(1 << 23)
"""From here on every fp32 number is an integer."""


def word_of(value: Attribute) -> str:
    """Return the word of an enumeration however it is spelled."""
    return value.word if isinstance(value, Enumerated) else str(value)


@declare("pto.tcvt", tile("zz?", "z"))
def _convert(m: Machine, op: Op) -> None:
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    mode = word_of(op.attributes.get("rmode", op.attributes.get("round_mode", "CAST_RINT"))).upper()
    if mode not in MODES:
        raise AttributeValueError(f"there is no rounding mode {mode!r}", help=f"one of {', '.join(MODES)}")
    saturates = op.attributes.get("sat_mode", op.attributes.get("satmode", op.attributes.get("saturation_mode")))
    given = None if saturates is None else word_of(saturates).upper() in ("ON", "SAT", "TRUE")
    values = read(m, source, target.valid, target.limits)
    cover(m, target, converted(m, values, target.type.element.dtype, MODES[mode], given))


@declare("pto.tpack", tile("z", "z"))
def _pack(m: Machine, op: Op) -> None:
    """Integers cut to the low bits that the destination has room for."""
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    values = read(m, source, target.valid, target.limits)
    cover(m, target, converted(m, values, target.type.element.dtype, "trunc", saturates=False))


def converted(m: Machine, values: Expr, to: DataType, mode: str, saturates: bool | None) -> Expr:
    """Return a tile in another element type."""
    assert isinstance(values.type, TileType)
    come = values.type.dtype
    if come == to:
        return _rounded(m, values, mode) if come.is_float() else values
    if saturates is None:
        saturates = (come.name, to.name) not in _WRAPS
    if come.is_float() and to.is_float():
        return _between_floats(m, values, to, saturates)
    if come.is_float() and not saturates:
        whole = m.b.op("tile.cast", x=values, target_type=INT64, mode=mode)
        return whole if to == INT64 else m.b.op("tile.cast", x=whole, target_type=to)
    if not come.is_float() and saturates and to.is_int():
        values = _clamped(m, values, to)
        if to == come:
            return values
    return m.b.op("tile.cast", x=values, target_type=to, mode=mode)


def _rounded(m: Machine, values: Expr, mode: str) -> Expr:
    """Return floats rounded to integers; what is too large to have a fraction, or no number, stays."""
    assert isinstance(values.type, TileType)
    whole = m.b.op("tile.cast", x=values, target_type=INT32, mode=mode)
    back = m.b.op("tile.cast", x=whole, target_type=values.type.dtype)
    size = m.b.op("tile.abs", x=values)
    return where(m, size, CmpType.LT, constant(WHOLE), back, values)


def _between_floats(m: Machine, values: Expr, to: DataType, saturates: bool) -> Expr:
    assert isinstance(values.type, TileType)
    if saturates and to.bits < values.type.dtype.bits:
        largest = largest_finite(to)
        values = m.b.op("tile.minimum", lhs=values, rhs=constant(largest))
        values = m.b.op("tile.maximum", lhs=values, rhs=constant(-largest))
    return m.b.op("tile.cast", x=values, target_type=to)


def _clamped(m: Machine, values: Expr, to: DataType) -> Expr:
    """Return integers no smaller and no larger than another type holds."""
    assert isinstance(values.type, TileType)
    come = values.type.dtype
    low, high = (int(limit) for limit in to.limits)
    if come.limits[1] > high:
        values = m.b.op("tile.minimum", lhs=values, rhs=constant(high, come))
    if come.limits[0] < low:
        values = m.b.op("tile.maximum", lhs=values, rhs=constant(low, come))
    return values
