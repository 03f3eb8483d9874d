"""Quantized tiles: integers with a scale, per tile or row."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.dtypes import FP32
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import cover, read, static
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants, declare, element_type
from tilewright.pto.operand_laws import quantized
from tilewright.pto.ops.conversions import converted
from tilewright.pto.text.form import tile

BLOCK = 8
"""The factors of a row: one for each of eight columns, and again from the ninth on."""


def _has_its_offset(op: Op, _: Constants) -> None:
    """Refuse an asymmetric quantization without an offset, and a symmetric one with one."""
    kind = word_of(op.attributes.get("quant_type", "INT8_SYM"))
    if kind not in ("INT8_SYM", "INT8_ASYM"):
        raise PtoAttributeError(f"`{kind}` is no quant_type", help="it is INT8_SYM or INT8_ASYM")
    has_offset = len(op.ins) == 3
    if has_offset != (kind == "INT8_ASYM"):
        message = f"`{op.name}` of {kind} has {'an' if has_offset else 'no'} offset"
        raise PtoAttributeError(message, help="INT8_ASYM takes an offset, INT8_SYM none")
    element, wanted = element_type(op.outs[0].type).name, "ui8" if has_offset else "i8"
    if element not in (wanted, f"s{wanted}"):
        raise PtoTypeMismatchError(f"`{op.name}` of {kind} makes {wanted}, got {element}", help=f"write to {wanted}")


@declare(
    "pto.tquant",
    tile("zzz?", "z"),
    rule=_has_its_offset,
    law=quantized,
    example="(%x: t8x64xf32, %f: t8x8xf32 = 9, %out: t8x64xi8); {op} ins(%x, %f) outs(%out)",
    means="np.clip(np.rint(x * np.tile(f, 8)), -128, 127)",
)
def _quantize(m: Machine, op: Op, target: Tile, source: Tile, factors: Tile, *offsets: Tile) -> None:
    """Floats times their factors, and offsets added, rounded to the nearest even and clamped to a byte."""
    values = m.b.tile("mul", read(m, source, target.valid, target.limits), _per_block(m, factors, target))
    for offset in offsets:
        values = m.b.tile("add", values, _per_block(m, offset, target))
    cover(m, target, converted(m, values, target.type.element.dtype, "rint", saturates=True))


def _per_block(m: Machine, factors: Tile, target: Tile) -> Expr:
    """Return the factor of each element of a destination: those of its row, over and over."""
    rows, cols = static(target.valid, target.limits)
    made = read(m, factors, (target.valid[0], m.b.index(BLOCK)), (rows, BLOCK))
    width = BLOCK
    while width < cols:
        made, width = m.b.tile("concat", made, made), 2 * width
    cut = m.b.tile("slice", made, (rows, cols), (0, 0)) if width > cols else made
    return m.b.tile("set_validshape", cut, *target.valid)


@declare(
    "pto.tdequant",
    tile("zzz", "z"),
    example="(%x: t8x64xi8, %f: t8x8xf32, %g: t8x8xf32, %out: t8x64xf32); {op} ins(%x, %f, %g) outs(%out)",
    means="(x - g[:, :1]) * f[:, :1]",
)
def _dequantize(m: Machine, op: Op, target: Tile, source: Tile, scales: Tile, offsets: Tile) -> None:
    """Integers less the offset of their row, times its scale."""
    rows = (target.valid[0], m.b.index(1)), (target.limits[0], 1)
    scale, offset = (read(m, each, *rows) for each in (scales, offsets))
    values = cast(m, read(m, source, target.valid, target.limits), FP32)
    cover(m, target, m.b.tile("row_expand_mul", m.b.tile("row_expand_sub", values, offset), scale))
