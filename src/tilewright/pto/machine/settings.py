"""Settings: numbers that an op leaves in registers of the machine for the ops behind it."""

from __future__ import annotations

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT64
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import get_cell, set_cell

ATOMIC_AT = 6
"""The first bit of the control word that says what is combined in global memory."""

SETTERS: set[str] = set()
"""The ops that leave numbers, by their full names."""


def setters(names: str) -> str:
    """Note ops that leave numbers, as `declare` names them; return their names."""
    SETTERS.update(f"pto.{name}" for name in names.removeprefix("pto.").split())
    return names


def _is_straight(m: Machine) -> bool:
    """Return whether settings are only made by the entry itself, outside of loops and branches."""
    for func in m.funcs:
        ops = func.body.ops if func.body else []
        outside = ops if func is m.calls[0] else []
        if any(inner.name in SETTERS for op in ops for inner in op.walk() if inner not in outside):
            return False
    return True


def note(m: Machine, name: str, *numbers: Expr) -> None:
    """Note numbers: here where that is all that can happen, else in memory where the program finds them."""
    if _is_straight(m):
        m.settings[name] = tuple(map(m.b.index, numbers))
        return
    for which, value in enumerate(numbers):
        set_cell(m, (name, which), value)


def setting(m: Machine, name: str, count: int = 1) -> tuple[Expr, ...]:
    """Return the numbers of a setting, zero where nobody made it."""
    if name in m.settings or _is_straight(m):
        return m.settings.get(name, (m.b.index(0),) * count)
    return tuple(get_cell(m, (name, which)) for which in range(count))


def bits(m: Machine, number: Expr, first: int, count: int) -> Expr:
    """Return some bits of a number, as an index."""
    word = m.b.cast(number, INT64)
    low = m.b.scalar("shr", word, constant(first, INT64)) if first else word
    return m.b.index(m.b.scalar("bit_and", low, constant((1 << count) - 1, INT64)))
