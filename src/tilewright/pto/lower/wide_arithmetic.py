"""Wide arithmetic: scalar ops with two results, and numbers whose bits are read as another type."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INDEX, INT64, UINT64, UNSIGNED, DataType
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.lower.build import element_of
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.tiles import bytes_view
from tilewright.pto.lower.values import Number
from tilewright.pto.module import Op
from tilewright.pto.types import Scalar


@lowers("arith.bitcast")
def _bitcast(m: Machine, op: Op) -> Number:
    """The same bits as another type, by way of memory."""
    come, go = op.operands[0].type, op.results[0].type
    assert isinstance(come, Scalar) and isinstance(go, Scalar)
    if come.bits != go.bits:
        raise UnsupportedFeatureError(f"{come} has not as many bits as {go}")
    cell, one = m.memory.cell(op, come), m.b.index(1)
    m.b.do("tensor.write", x=bytes_view(m, cell, (one,), (one,)), indices=(0,), value=m.expr(op.operands[0]))
    seen = bytes_view(m, replace(cell, element=go), (one,), (one,))
    return Number(m.b.op("tensor.read", x=seen, indices=(0,)))


@lowers("arith.addui_extended")
def _add_with_carry(m: Machine, op: Op) -> tuple[Number, Number]:
    lhs, rhs = (m.expr(v) for v in op.operands)
    dtype = UNSIGNED[element_of(lhs).get_byte()]
    total = m.b.scalar("add", lhs, rhs)
    carried = m.b.scalar("lt", m.b.cast(total, dtype), m.b.cast(lhs, dtype))
    return Number(total), Number(carried)


@lowers("arith.mulsi_extended", "arith.mului_extended")
def _long_product(m: Machine, op: Op) -> tuple[Number, Number]:
    """The low and the high half of a product, taken in twice the bits."""
    lhs, rhs = (m.expr(v) for v in op.operands)
    dtype = element_of(lhs)
    if dtype.bits > 32 or dtype == INDEX:
        raise UnsupportedFeatureError("no product of 64-bit numbers is kept whole", help="multiply 32-bit numbers")
    wide = INT64 if op.name == "arith.mulsi_extended" else UINT64
    whole = m.b.scalar("mul", *(_widened(m, value, wide) for value in (lhs, rhs)))
    high = m.b.scalar("shr", whole, constant(dtype.bits, wide))
    return Number(m.b.cast(whole, dtype)), Number(m.b.cast(high, dtype))


def _widened(m: Machine, value: Expr, wide: DataType) -> Expr:
    if wide == INT64:
        return m.b.cast(value, wide)
    return m.b.cast(m.b.cast(value, UNSIGNED[element_of(value).get_byte()]), wide)
