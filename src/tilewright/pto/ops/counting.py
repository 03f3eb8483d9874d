"""Counting: tiles whose elements are their own positions."""

from __future__ import annotations

from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import INT32, DataType
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import cover
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.elementwise import cast, destination, resized
from tilewright.pto.text.form import tile


def columns(m: Machine, count: int, dtype: DataType = INT32) -> Expr:
    """Return the row 0, 1, 2, ...: made by doubling, so that a short program makes a long one."""
    row = m.b.op("tile.full", shape=(1, 1), dtype=INT32, value=constant(0, INT32))
    have = 1
    while have < count:
        more = m.b.op("tile.add", lhs=row, rhs=constant(have, INT32))
        row = m.b.op("tile.concat", a=row, b=more)
        have *= 2
    if have > count:
        row = m.b.op("tile.slice", x=row, shape=(1, count), offset=(0, 0))
    return cast(m, row, dtype)


def over_columns(m: Machine, shape: tuple[int, int]) -> Expr:
    """Return a tile that holds the column of each of its elements."""
    blank = m.b.op("tile.full", shape=shape, dtype=INT32, value=constant(0, INT32))
    return m.b.op("tile.col_expand", x=blank, vec=columns(m, shape[1]))


def over_rows(m: Machine, shape: tuple[int, int]) -> Expr:
    """Return a tile that holds the row of each of its elements."""
    blank = m.b.op("tile.full", shape=shape, dtype=INT32, value=constant(0, INT32))
    return m.b.op("tile.row_expand", x=blank, vec=m.b.op("tile.reshape", x=columns(m, shape[0]), shape=(shape[0], 1)))


@declare("pto.tci", tile("e"))
def _count(m: Machine, op: Op) -> None:
    """Numbers that go up, or down, from a start, row after row."""
    target = destination(m, op)
    dtype = target.type.element.dtype

    def make(shape: tuple[int, int]) -> Expr:
        before = m.b.op("tile.mul", lhs=over_rows(m, shape), rhs=m.b.cast(target.valid[1], INT32))
        return cast(m, m.b.op("tile.add", lhs=before, rhs=over_columns(m, shape)), dtype)

    steps = resized(m, make, target)
    assert isinstance(steps.type, TileType)
    start = m.b.cast(m.expr(op.ins[0]), dtype)
    if op.attributes.get("descending"):
        steps = m.b.op("tile.neg", x=steps)
    cover(m, target, m.b.op("tile.add", lhs=steps, rhs=start))
