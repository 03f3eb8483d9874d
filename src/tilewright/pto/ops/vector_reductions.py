"""Vector reductions: all lanes, blocks of 32 bytes, or pairs; lanes that a mask leaves out take no part."""

from __future__ import annotations

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr
from tilewright.dtypes import UNSIGNED
from tilewright.pto.machine.build import element_of
from tilewright.pto.machine.elements import cast, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import (
    active,
    extended,
    full,
    iota,
    lanes_of,
    mask_of,
    put,
    reshaped,
    scratch,
    take,
    vector,
    vector_type,
    window,
)
from tilewright.pto.machine.registers import where as chosen
from tilewright.pto.machine.values import Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import register

_FOLDS = {"add": "row_sum", "max": "row_max", "min": "row_min"}


def _fold(op: Op) -> str:
    return op.name[-3:]


def _taking_part(m: Machine, op: Op) -> Expr:
    """Return the lanes of an op's operand, those that take no part replaced by what changes nothing."""
    row = m.get(op.operands[0], Vector).expr
    mask = mask_of(m, op)
    on = None if mask is None else active(m, mask, element_of(row).get_byte())
    if on is None:
        return row
    low, high = element_of(row).limits
    start = {"add": 0, "max": low, "min": high}[_fold(op)]
    return chosen(m, on, row, full(m, lanes_of(row), element_of(row), start))


def _folded(m: Machine, op: Op, row: Expr, groups: int) -> Expr:
    """Return one element for each group of neighbours."""
    square = reshaped(m, row, groups, lanes_of(row) // groups)
    return reshaped(m, m.b.op(f"tile.{_FOLDS[_fold(op)]}", x=square), 1, groups)


@declare("pto.vcadd", register("um?", "u"))
def _sum(m: Machine, op: Op) -> Vector:
    """The sum in the first lane, in the result's type."""
    type_ = vector_type(op.results[0])
    row = cast(m, _taking_part(m, op), type_.element.dtype)
    return vector(op, extended(m, _folded(m, op, row, 1), type_.lanes))


@declare("pto.vcmax vcmin", register("um?", "u"))
def _extreme(m: Machine, op: Op) -> Vector:
    """The largest or smallest element in the first lane, in the second its index as an integer's bits."""
    row, type_ = _taking_part(m, op), vector_type(op.results[0])
    best = _folded(m, op, row, 1)
    none = full(m, lanes_of(row), dtypes.INT32, lanes_of(row) - 1)
    at = m.b.op("tile.row_min", x=where(m, row, CmpType.EQ, best, iota(m, lanes_of(row)), none))
    bits = UNSIGNED[type_.element.nbytes]
    buffer = scratch(m, zero=True)
    put(m, window(m, buffer, type_.element.dtype, 1), best)
    put(m, window(m, buffer, bits, 1, first=1), cast(m, at, bits))
    return vector(op, take(m, window(m, buffer, type_.element.dtype, type_.lanes), type_.lanes))


@declare("pto.vcgadd vcgmax vcgmin", register("um?", "u"))
def _by_block(m: Machine, op: Op) -> Vector:
    """Eight results, one for each block of 32 bytes, in the first eight lanes."""
    row, type_ = _taking_part(m, op), vector_type(op.results[0])
    return vector(op, extended(m, _folded(m, op, cast(m, row, type_.element.dtype), 8), type_.lanes))


@declare("pto.vcpadd", register("um?", "u"))
def _by_pair(m: Machine, op: Op) -> Vector:
    """The sums of neighbours in the lower half of the lanes."""
    row, type_ = _taking_part(m, op), vector_type(op.results[0])
    row = cast(m, row, type_.element.dtype)
    return vector(op, extended(m, _folded(m, op, row, lanes_of(row) // 2), type_.lanes))
