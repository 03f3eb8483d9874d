"""Shuffles: lanes that change places inside registers."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Expr
from tilewright.ops.builder import element_of
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import (
    bitcast,
    blank_lanes,
    lane_view,
    lanes_of,
    lit,
    lit_lanes,
    lit_lanes_of,
    position,
    scratch,
    window,
    written,
)
from tilewright.pto.machine.values import Predicate, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.masks import by_width, is_upper
from tilewright.pto.ops.vector_memory import squeezed
from tilewright.pto.text.form import register
from tilewright.pto.types import VReg


@declare(
    "pto.vintlv vdintlv",
    register("vv", "vv"),
    means={"vintlv": "np.stack([x, y], 1).reshape(2, 64)", "vdintlv": "np.append(x, y).reshape(64, 2).T"},
)
@by_width("pintlv", register("nn", "nn"), means="np.stack([m, o], 1).reshape(2, -1)")
@by_width("pdintlv", register("nn", "nn"), means="np.append(m, o).reshape(-1, 2).T")
def _interleave(m: Machine, op: Op, *pair: Vector | Predicate) -> tuple[Expr, Expr]:
    """The lanes of two rows in turn, as two rows; or the even and the odd lanes of two rows behind each other."""
    return _interleaved(m, op, pair)


def _interleaved(m: Machine, op: Op, pair: Sequence[Vector | Predicate]) -> tuple[Expr, Expr]:
    rows = [lit_lanes_of(m, each) if isinstance(each, Predicate) else each.expr for each in pair]
    lanes, dtype = lanes_of(rows[0]), element_of(rows[0])
    size = lanes * dtype.get_byte()
    turns, halves = ((2, 0, 0), (2, 1, 0)), ((1, 0, 0), (1, 0, size))
    come, go = (halves, turns) if "dintlv" in op.name else (turns, halves)
    buffer = scratch(m, 2 * size)
    for place, row in zip(come, rows, strict=True):
        m.b.store(window(m, buffer, dtype, lanes, *place), row)
    low, high = (m.b.load(window(m, buffer, dtype, lanes, *place), (1, lanes)) for place in go)
    return low, high


@declare(
    "pto.vintlvv2 vdintlvv2",
    register("vv", "v", "part"),
    example='(%x: v64xf32, %y: v64xf32); %r = {op} %x, %y, "HIGHER" -> v64xf32',
    means={"vintlvv2": "np.stack([x, y], 1).reshape(2, 64)[1]", "vdintlvv2": "np.append(x, y)[1::2]"},
)
def _interleave_half(m: Machine, op: Op, *pair: Vector) -> Expr:
    """One of the two rows that `vintlv` and `vdintlv` make, the first one for `LOWER`."""
    return _interleaved(m, op, pair)[is_upper(op)]


@declare(
    "pto.vbitcast", register("u", "u"), widens=0, means='x.view("i4")', example="(%x: v64xf32); %r = {op} %x -> v64xi32"
)
def _bitcast(m: Machine, op: Op, source: Vector) -> Expr:
    """The same bits as lanes of another type."""
    return bitcast(m, source.expr, op.results[0].of(VReg).element.dtype)


# one lane after the other


@declare(
    "pto.vselr",
    register("uu", "u"),
    means="x[y % 64]",
    example="(%x: v64xf32, %y: v64xi32); %r = {op} %x, %y -> v64xf32",
)
def _lookup(m: Machine, op: Op, source: Vector, index: Vector) -> Expr:
    """Each lane is the lane of the first vector that the second one names, modulo their number."""
    values, indices = lane_view(m, source.expr), lane_view(m, index.expr)
    made, buffer = blank_lanes(m, source.element.dtype, source.lanes)
    with m.b.loop(0, source.lanes, hint="lane") as lane:
        place = m.b.scalar("bit_and", position(m, indices, lane), m.b.index(source.lanes - 1))
        m.b.set(made, m.b.get(values, place), lane)
    return written(m, op, buffer)


@declare("pto.vsqz", register("vm"), means="np.append(x[m], 0 * x[~m])")
def _squeeze(m: Machine, op: Op, source: Vector) -> Expr:
    """The lanes whose mask is set, in front; the machine remembers how many bytes they take."""
    on = lit(m, op, source.element.nbytes)
    values = lane_view(m, source.expr)
    made, buffer = blank_lanes(m, source.element.dtype, source.lanes)
    count = m.b.held(m.b.index(0), "count")
    with lit_lanes(m, on, source.lanes) as lane:
        m.b.set(made, m.b.get(values, lane), count)
        m.b.assign(count, m.b.add(count, 1))
    squeezed(m, m.b.mul(count, source.element.nbytes))
    return written(m, op, buffer)


@declare(
    "pto.vusqz",
    register("un?|n", "u"),
    means="np.cumsum(m) - m",
    example="(%x: v64xi32, %m: m32); %r = {op} %x, %m -> v64xi32",
)
def _prefix(m: Machine, op: Op) -> Expr:
    """For each lane, how many lanes before it have their mask set."""
    type_ = op.results[0].of(VReg)
    on = lit(m, op, type_.element.nbytes)
    flags = None if on is None else lane_view(m, on)
    made, buffer = blank_lanes(m, type_.element.dtype, type_.lanes)
    count = m.b.held(m.b.index(0), "count")
    with m.b.loop(0, type_.lanes, hint="lane") as lane:
        m.b.set(made, m.b.cast(count, type_.element.dtype), lane)
        step = m.b.index(1) if flags is None else m.b.index(m.b.get(flags, lane))
        m.b.assign(count, m.b.scalar("add", count, step))
    squeezed(m, m.b.mul(count, type_.element.nbytes))
    return written(m, op, buffer)
