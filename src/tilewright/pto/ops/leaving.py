"""What leaves an accumulator: scaled, rectified, converted and clipped on its way, for micro-ops and for tiles.

A scale per channel is a word of 64 bits for each column: 19 bits of an f32, and an offset of 9 bits at bit 37.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.enums import AtomicType, CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import FP32, INT32, UINT32, UINT64, DataType
from tilewright.ops.builder import element_of, tile_type
from tilewright.pto.machine.elements import arithmetic, cast, filled, over_columns, over_rows, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import bitcast
from tilewright.pto.machine.tiles import bytes_view, cell_view, moved
from tilewright.pto.machine.values import Pointer
from tilewright.pto.ops.conversions import converted
from tilewright.pto.types import F32, SCALARS
from tilewright.records import record

SCALE_BITS = 0xFFFFE000
"""What counts of the low half of a word."""
OFFSET_AT, OFFSET_BITS = 37, 9
_UI32 = SCALARS["ui32"]


@record
class Leaving:
    """What is done to elements as they leave; factors are one number, or a row of one for each column."""

    scale: Expr | None = None
    offset: Expr | None = None
    """What is added to the integers that elements are rounded to."""
    is_rectified: bool = False
    slope: Expr | None = None
    """What negative elements are multiplied with where that is not zero."""
    saturates: bool = True
    keeps_nan: bool = False
    clip: Expr | None = None
    """The most that converted elements may be."""

    def apply(self, m: Machine, values: Expr, to: DataType) -> Expr:
        """Return elements of an accumulator as they arrive."""
        if self.scale is not None:
            values = _with(m, "mul", cast(m, values, FP32), self.scale)
        values = self._rectified(m, values)
        if to.is_int() and element_of(values).is_float() and self.offset is not None:
            values = _with(m, "add", converted(m, values, FP32, "rint", None), self.offset)
        if to.is_float() and to.bits < 32 and self.saturates and not self.keeps_nan:
            values = cast(m, values, FP32)
            values = where(m, values, CmpType.EQ, values, values, filled(m, tile_type(values), 0))
        made = converted(m, values, to, "rint", self.saturates or to.is_int()) if element_of(values) != to else values
        return made if self.clip is None else m.b.tile("minimum", made, m.b.cast(self.clip, to))

    def _rectified(self, m: Machine, values: Expr) -> Expr:
        if self.slope is None:
            return m.b.tile("relu", values) if self.is_rectified else values
        values = cast(m, values, FP32)
        zero = filled(m, tile_type(values), 0)
        return where(m, values, CmpType.GE, zero, values, _with(m, "mul", values, self.slope))


def _with(m: Machine, name: str, values: Expr, factor: Expr) -> Expr:
    """Return elements computed with a number, or with the row's number of their column."""
    if isinstance(factor.type, TileType):
        return m.b.tile(f"col_expand_{name}", values, factor)
    return arithmetic(m, name, values, factor)


def words_at(m: Machine, pointer: Pointer, cols: int) -> tuple[Expr, Expr]:
    """Return the scales and offsets of words that lie one after the other, as rows."""
    halves = replace(pointer, element=_UI32)
    low, high = (
        m.b.load(bytes_view(m, moved(m, halves, m.b.index(half)), (1, cols), (2 * cols, 2)), (1, cols))
        for half in (0, 1)
    )
    scale = bitcast(m, m.b.tile("and_", low, constant(SCALE_BITS, UINT32)), FP32)
    shifted = m.b.tile("shr", high, constant(OFFSET_AT - 32, UINT32))
    offset = cast(m, m.b.tile("and_", shifted, constant((1 << OFFSET_BITS) - 1, UINT32)), INT32)
    sign = constant(1 << (OFFSET_BITS - 1), INT32)
    return scale, cast(m, m.b.tile("sub", m.b.tile("xor", offset, sign), sign), FP32)


def row_at(m: Machine, pointer: Pointer, cols: int) -> Expr:
    """Return as many f32 numbers as lie one after the other."""
    return m.b.load(bytes_view(m, replace(pointer, element=F32), (1, cols), (cols, 1)), (1, cols))


def word(m: Machine, number: Expr) -> tuple[Expr, Expr]:
    """Return the scale and the offset of one word."""
    cell = m.memory.cell(("word", m.b.span), SCALARS["ui64"])
    m.b.set(cell_view(m, cell), m.b.cast(number, UINT64), 0)
    scale, offset = words_at(m, cell, 1)
    return m.b.tile("read", scale, (0, 0)), m.b.tile("read", offset, (0, 0))


_UPDATES = {"max": "atomic_max", "min": "atomic_min"}


def put(m: Machine, target: Pointer, steps: tuple[Expr, Expr], value: Expr, combine: str) -> None:
    """Write a tile with so many elements between rows and between columns, or combine it with what is there."""
    rows, cols = tile_type(value).shape
    if combine not in _UPDATES:
        atomic = AtomicType.Add if combine == "add" else AtomicType.None_
        m.b.store(bytes_view(m, target, (rows, cols), steps), value, atomic=atomic)
        return
    at = [
        m.b.tile("mul", numbers, m.b.cast(step, INT32))
        for numbers, step in zip((over_rows(m, (rows, cols)), over_columns(m, (rows, cols))), steps, strict=True)
    ]
    ends = [m.b.mul(step, extent - 1) for step, extent in zip(steps, (rows, cols), strict=True)]
    flat = bytes_view(m, target, (m.b.add(m.b.add(ends[0], ends[1]), 1),), (1,))
    m.b.tile(_UPDATES[combine], flat, m.b.tile("add", *at), value)
