"""Shuffles: lanes that change places inside registers."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.pto.machine.build import element_of
from tilewright.pto.machine.lanes import blank_lanes, lane_view, lit_lanes, position, written
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import (
    bitcast,
    lanes_of,
    lit,
    lit_lanes_of,
    predicate,
    put,
    scratch,
    take,
    vector,
    window,
)
from tilewright.pto.machine.values import Predicate, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.masks import by_width
from tilewright.pto.ops.streams import squeezed
from tilewright.pto.text.form import register
from tilewright.pto.types import VReg


def interleaved(m: Machine, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return the lanes of two rows in turn, as two rows."""
    lanes, dtype = lanes_of(lhs), element_of(lhs)
    buffer, size = scratch(m, 2 * lanes * dtype.get_byte()), lanes * dtype.get_byte()
    for first, row in enumerate((lhs, rhs)):
        put(m, window(m, buffer, dtype, lanes, 2, first), row)
    low, high = (take(m, window(m, buffer, dtype, lanes, offset=at), lanes) for at in (0, size))
    return low, high


def deinterleaved(m: Machine, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return the even and the odd lanes of two rows, one behind the other."""
    lanes, dtype = lanes_of(lhs), element_of(lhs)
    buffer, size = scratch(m, 2 * lanes * dtype.get_byte()), lanes * dtype.get_byte()
    for offset, row in ((0, lhs), (size, rhs)):
        put(m, window(m, buffer, dtype, lanes, offset=offset), row)
    even, odd = (take(m, window(m, buffer, dtype, lanes, 2, first), lanes) for first in (0, 1))
    return even, odd


@declare("pto.vintlv vdintlv", register("vv", "vv"))
def _interleave(m: Machine, op: Op) -> tuple[Vector, Vector]:
    lhs, rhs = (m.get(v, Vector).expr for v in op.operands)
    low, high = (interleaved if op.name == "pto.vintlv" else deinterleaved)(m, lhs, rhs)
    return vector(op, low), vector(op, high, 1)


@by_width("pintlv", register("nn", "nn"))
@by_width("pdintlv", register("nn", "nn"))
def _interleave_masks(m: Machine, op: Op) -> tuple[Predicate, Predicate]:
    lhs, rhs = (lit_lanes_of(m, m.get(v, Predicate)) for v in op.operands)
    low, high = (interleaved if op.name.startswith("pto.pintlv") else deinterleaved)(m, lhs, rhs)
    return predicate(op, low), predicate(op, high, 1)


@declare("pto.vbitcast", register("u", "u"))
def _bitcast(m: Machine, op: Op) -> Vector:
    return vector(op, bitcast(m, m.get(op.operands[0], Vector).expr, op.results[0].of(VReg).element.dtype))


# one lane after the other


@declare("pto.vselr", register("uu", "u"))
def _lookup(m: Machine, op: Op) -> Vector:
    """Each lane is the lane of the first vector that the second one names, modulo their number."""
    source, index = (m.get(v, Vector) for v in op.operands)
    values, indices = lane_view(m, source.expr), lane_view(m, index.expr)
    made, buffer = blank_lanes(m, source.element.dtype, source.lanes)
    with m.b.loop(0, source.lanes, hint="lane") as lane:
        place = m.b.scalar("bit_and", position(m, indices, lane), m.b.index(source.lanes - 1))
        m.b.set(made, m.b.get(values, place), lane)
    return written(m, op, buffer)


@declare("pto.vsqz", register("vm"))
def _squeeze(m: Machine, op: Op) -> Vector:
    """The lanes whose mask is set, in front; the machine remembers how many bytes they take."""
    source = m.get(op.operands[0], Vector)
    on = lit(m, op, source.element.nbytes)
    values = lane_view(m, source.expr)
    made, buffer = blank_lanes(m, source.element.dtype, source.lanes)
    count = m.b.variable(m.b.index(0).type, "count")
    m.b.assign(count, m.b.index(0))
    with lit_lanes(m, on, source.lanes) as lane:
        m.b.set(made, m.b.get(values, lane), count)
        m.b.assign(count, m.b.add(count, 1))
    squeezed(m, m.b.mul(count, source.element.nbytes))
    return written(m, op, buffer)


@declare("pto.vusqz", register("un?|n", "u"))
def _prefix(m: Machine, op: Op) -> Vector:
    """For each lane, how many lanes before it have their mask set."""
    type_ = op.results[0].of(VReg)
    on = lit(m, op, type_.element.nbytes)
    flags = None if on is None else lane_view(m, on)
    made, buffer = blank_lanes(m, type_.element.dtype, type_.lanes)
    count = m.b.variable(m.b.index(0).type, "count")
    m.b.assign(count, m.b.index(0))
    with m.b.loop(0, type_.lanes, hint="lane") as lane:
        m.b.set(made, m.b.cast(count, type_.element.dtype), lane)
        step = m.b.index(1) if flags is None else m.b.index(m.b.get(flags, lane))
        m.b.assign(count, m.b.scalar("add", count, step))
    squeezed(m, m.b.mul(count, type_.element.nbytes))
    return written(m, op, buffer)
