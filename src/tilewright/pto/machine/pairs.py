"""Pairs: two numbers in one value, as work items have them; the first one lies in the low bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arrays import np
from tilewright.core.expr import Expr
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import bytes_view, cell_view
from tilewright.pto.module import Op
from tilewright.pto.text.literals import dense
from tilewright.pto.types import SCALARS, Scalar

MEMBERS = {
    f"vector<2x{name}>": SCALARS[name] for name in ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
}  # fmt: skip
"""What each of the two numbers is, by the type of the pair."""


def pair_bits(text: str, type_: Scalar) -> int:
    """Return the bits of a pair from the text of a constant: two numbers, or one for both."""
    made = np.array(dense(text, type_), MEMBERS[type_.name].dtype.numpy)
    return int.from_bytes(made.tobytes(), "little")


def reinterpreted(m: Machine, op: Op, value: Expr, come: Scalar, to: Scalar, count: int = 1) -> list[Expr]:
    """Return the bits of a value as so many of another type, by way of memory."""
    cell = m.memory.cell((m.here(op), come, to), come)
    m.b.set(cell_view(m, cell), value, 0)
    view = bytes_view(m, replace(cell, element=to), (count,), (1,))
    return [m.b.get(view, i) for i in range(count)]


def unpacked(m: Machine, op: Op, value: Expr, type_: Scalar) -> list[Expr]:
    """Return the numbers that a value holds: two of a pair, itself where it is a number."""
    member = MEMBERS.get(type_.name)
    return [value] if member is None else reinterpreted(m, op, value, type_, member, 2)


def packed(m: Machine, op: Op, numbers: Sequence[Expr], type_: Scalar) -> Expr:
    """Return numbers as one value of a type."""
    member = MEMBERS.get(type_.name)
    if member is None:
        return numbers[0]
    cell = m.memory.cell((m.here(op), type_), type_)
    view = bytes_view(m, replace(cell, element=member), (2,), (1,))
    for i, number in enumerate(numbers):
        m.b.set(view, number, i)
    return m.b.get(cell_view(m, cell), 0)
