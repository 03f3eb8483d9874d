"""Counting: tiles and registers of one number, or of numbers that count."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.dtypes import INT32
from tilewright.pto.machine.elements import cast, constant_tile, over_columns, over_rows, resized
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import destination, given
from tilewright.pto.machine.registers import full, iota, scalar_in
from tilewright.pto.machine.tiles import cover
from tilewright.pto.machine.values import Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import register, tile
from tilewright.pto.types import VReg


@declare("pto.texpands", tile("e"))
def _expand_number(m: Machine, op: Op) -> None:
    target = destination(m, op)
    cover(m, target, constant_tile(m, target, m.b.cast(m.expr(op.ins[0]), target.type.element.dtype)))


@declare("pto.vbr", register("e"))
def _broadcast(m: Machine, op: Op) -> Expr:
    type_ = op.results[0].of(VReg)
    return full(m, type_.lanes, type_.element.dtype, scalar_in(m, op.operands[0], type_.element.dtype))


@declare("pto.vdup", register("vm?|em?"))
def _duplicate(m: Machine, op: Op) -> Expr | None:
    """A number in every lane: a scalar, or the first or last lane of a vector."""
    type_, source = op.results[0].of(VReg), m.values[op.operands[0]]
    if isinstance(source, Vector):
        lane = source.lanes - 1 if "HIGH" in str(op.attributes.get("position", "")) else 0
        number = m.b.tile("read", source.expr, (0, lane))
    else:
        number = scalar_in(m, op.operands[0], type_.element.dtype)
    return given(m, op, full(m, type_.lanes, type_.element.dtype, number))


@declare("pto.tci", tile("e"))
def _count(m: Machine, op: Op) -> None:
    """Numbers that go up, or down, from a start, row after row."""
    target = destination(m, op)
    dtype = target.type.element.dtype

    def make(shape: tuple[int, int]) -> Expr:
        before = m.b.tile("mul", over_rows(m, shape), m.b.cast(target.valid[1], INT32))
        return cast(m, m.b.tile("add", before, over_columns(m, shape)), dtype)

    steps = resized(m, make, target)
    start = m.b.cast(m.expr(op.ins[0]), dtype)
    if op.attributes.get("descending"):
        steps = m.b.tile("neg", steps)
    cover(m, target, m.b.tile("add", steps, start))


@declare("pto.vci", register("e"))
def _count_lanes(m: Machine, op: Op) -> Expr:
    """Numbers that go up from a start, or down."""
    type_ = op.results[0].of(VReg)
    steps = cast(m, iota(m, type_.lanes), type_.element.dtype)
    start = scalar_in(m, op.operands[0], type_.element.dtype)
    if str(op.attributes.get("order", "ASC")) in ("DESC", "DEC"):
        return m.b.tile("sub", full(m, type_.lanes, type_.element.dtype, start), steps)
    return m.b.tile("add", steps, start)
