"""Operands: what an op reads and what it gives, on tiles and on registers alike.

An op on tiles computes over the valid part of its destination, its sources read at the same coordinates. An op on
registers computes one-row tiles; lanes that its mask leaves out become zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.core.expr import Expr
from tilewright.dtypes import DataType
from tilewright.ops.builder import element_of
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import mask_of, masked
from tilewright.pto.machine.tiles import cover, read
from tilewright.pto.machine.values import Number, Tile, Vector
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Lowering
from tilewright.pto.types import TileBuf, VReg


def destination(m: Machine, op: Op) -> Tile:
    """Return the tile an op writes."""
    return m.get(op.outs[0], Tile)


def element_made(op: Op) -> DataType:
    """Return the element type of the tile or register that an op makes."""
    made = (op.outs or op.results)[0].type
    assert isinstance(made, TileBuf | VReg)
    return made.element.dtype


def operand(m: Machine, value: Value, target: Tile) -> Expr:
    """Return an operand over the destination's valid part: elements of a tile, or a number of its element type."""
    found = m.values[value]
    if isinstance(found, Number):
        return m.b.cast(found.expr, target.type.element.dtype)
    return read(m, m.get(value, Tile), target.valid, target.limits)


def operands(m: Machine, op: Op, count: int | None = None) -> list[Expr]:
    """Return what an op computes with, in its element type: tiles and numbers, the first so many."""
    if op.outs:
        target = destination(m, op)
        return [operand(m, value, target) for value in op.ins[:count]]
    rows = rows_of(m, op)
    made: list[Expr] = []
    for value in op.operands:
        found = m.values[value]
        if isinstance(found, Vector):
            made.append(cast(m, found.expr, element_of(rows[0])))
        elif isinstance(found, Number):
            made.append(m.b.cast(found.expr, element_of(rows[0]), "rint"))
    return made[:count]


def rows_of(m: Machine, op: Op) -> list[Expr]:
    """Return the vectors among the operands of an op."""
    found = (m.values[v] for v in op.operands)
    return [v.expr for v in found if isinstance(v, Vector)]


def given(m: Machine, op: Op, value: Expr) -> Expr | None:
    """Let a value be what an op writes, or return it as its result, with zeros where its mask is not set."""
    if op.outs:
        cover(m, destination(m, op), value)
        return None
    return masked(m, value, mask_of(m, op))


def elementwise(compute: Callable[..., Expr]) -> Lowering:
    """Return the lowering of an op whose elements are computed of those of its operands, as many as `compute` takes."""
    function: Any = compute

    def lowering(m: Machine, op: Op) -> Expr | None:
        return given(m, op, compute(m, op, *operands(m, op, function.__code__.co_argcount - 2)))

    lowering.__doc__, lowering.__module__ = compute.__doc__, compute.__module__
    return lowering
