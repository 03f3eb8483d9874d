"""What leaves an accumulator: scaled, rectified, converted and clipped on its way, for micro-ops and for tiles.

A scale per channel is a word of 64 bits for each column: 19 bits of an f32, and an offset of 9 bits at bit 37.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.enums import AtomicType, CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import FP16, FP32, INT32, UINT32, UINT64, DataType
from tilewright.ops.builder import element_of, tile_type
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.machine.elements import arithmetic, cast, filled, over_columns, over_rows, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import bitcast
from tilewright.pto.machine.tiles import bytes_view, cell_view, check_range, moved
from tilewright.pto.machine.values import Pointer, Tile
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants
from tilewright.pto.ops.conversions import converted
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import F32, SCALARS, Scalar
from tilewright.records import record

SCALE = 'fp.astype("u4").view("f4")'
"""What the words of a scaling tile multiply by, in NumPy."""

SCALE_BITS = 0xFFFFE000
"""What counts of the low half of a word."""
OFFSET_AT, OFFSET_BITS = 37, 9
WORD = 8
"""The bytes of a word."""
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


def scaled_by_words(op: Op, _: Constants) -> None:
    """Refuse a scale that is no word."""
    for value in op.ins[1:2]:
        if isinstance(value.type, Scalar) and not (value.type.is_integer and value.type.bits == 64):
            message = f"`{op.name}` takes its scale as a word of 64 bits, `%{value.name}` is {value.type}"
            raise PtoTypeMismatchError(message, help="pass the bits of an f32 as i64, an offset at bit 37")


def is_there(m: Machine, *factors: Expr | Tile) -> bool:
    """Return whether factors can be read: tiles of them have bytes."""
    return m.placed(*(each for each in factors if isinstance(each, Tile)))


def brought(
    m: Machine, op: Op, value: Expr, to: Scalar, factors: Sequence[Expr | Tile] = (), column: Expr | None = None
) -> Expr:
    """Return elements of a tile as an op brings them: rectified, and scaled by a word or by those of their columns.

    An accumulator leaves as `mte_l0c_gm` brings it without a word on saturation: within the limits of f16.
    """
    is_relu = word_of(op.attributes.get("reluPreMode", "")).upper() in ("NORMAL_RELU", "NORMALRELU")
    if not factors and element_of(value) == FP32 and to.dtype == FP16:
        return Leaving(is_rectified=is_relu).apply(m, value, FP16)
    if not factors:
        return cast(m, m.b.tile("relu", value) if is_relu else value, to.dtype)
    factor, cols = factors[0], tile_type(value).shape[1]
    if not isinstance(factor, Tile):
        return Leaving(*word(m, factor), is_relu).apply(m, value, to.dtype)
    if factor.type.element.nbytes != WORD or factor.type.slayout != "none_box":
        message = f"scales of columns are words of 64 bits in a row, `{op.name}` is given {brief_text(factor.type)}"
        raise PtoTypeMismatchError(message, help="make it a tile of ui64, without boxes")
    start = column or m.b.index(0)
    check_range(m, m.b.add(start, cols), factor.type.cols, f"there are scales for {factor.type.cols} columns")
    return Leaving(*words_at(m, moved(m, factor.place, start), cols), is_relu).apply(m, value, to.dtype)


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
