"""Counting: tiles and registers of one number, or of numbers that count."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.dtypes import INT32
from tilewright.pto.laws import counted
from tilewright.pto.machine.elements import cast, constant_tile, over_columns, over_rows, resized
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import destination, element_made, given
from tilewright.pto.machine.registers import full, iota
from tilewright.pto.machine.values import Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.operand_laws import of_elements
from tilewright.pto.text.form import register, tile
from tilewright.pto.types import VReg


@declare("pto.texpands", tile("e"), law=of_elements, means="n")
@declare("pto.vbr", register("e"), means="n")
@declare("pto.vdup", register("vm?|em?"), means="x[0]")
def _expand_number(m: Machine, op: Op) -> Expr | None:
    """A number everywhere: a scalar, or the first or last lane of a vector."""
    source = m.values[(op.ins or op.operands)[0]]
    if isinstance(source, Vector):
        lane = source.lanes - 1 if "HIGH" in str(op.attributes.get("position", "")) else 0
        number = m.b.tile("read", source.expr, (0, lane))
    else:
        number = _number(m, op)
    if op.outs:
        return given(m, op, constant_tile(m, destination(m, op), number))
    return given(m, op, full(m, op.results[0].of(VReg).lanes, element_made(op), number))


def _number(m: Machine, op: Op) -> Expr:
    """Return an op's scalar as an element of what it makes."""
    return m.b.cast(m.expr((op.ins or op.operands)[0]), element_made(op), "trunc" if op.outs else "rint")


@declare("pto.tci", tile("ez?"), law=counted, means="n + np.arange(512).reshape(8, 64)")
@declare("pto.vci", register("e"), means="n + np.arange(64)")
def _count(m: Machine, op: Op) -> Expr | None:
    """Numbers that go up, or down, from a start; in tiles row after row."""
    steps = _tile_steps(m, op) if op.outs else iota(m, op.results[0].of(VReg).lanes)
    steps, start = cast(m, steps, element_made(op)), _number(m, op)
    order = op.attributes.get("descending") if op.outs else op.attributes.get("order") in ("DESC", "DEC")
    return given(m, op, m.b.tile("add", m.b.tile("neg", steps) if order else steps, start))


def _tile_steps(m: Machine, op: Op) -> Expr:
    target = destination(m, op)

    def make(shape: tuple[int, int]) -> Expr:
        before = m.b.tile("mul", over_rows(m, shape), m.b.cast(target.valid[1], INT32))
        return cast(m, m.b.tile("add", before, over_columns(m, shape)), element_made(op))

    return resized(m, make, target)
