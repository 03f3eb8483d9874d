"""Signals: what one core says to another without saying anything, and the queues they go through."""

from __future__ import annotations

from collections.abc import Hashable

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32, DataType
from tilewright.pto.machine.cores import CUBE
from tilewright.pto.machine.machine import Machine


def push(m: Machine, towards: str, key: Hashable, value: Expr, split: int = 0, lane: int | None = None) -> None:
    """Append a tile to a queue."""
    assert m.core is not None
    only = {"lane": lane} if towards == "aiv" else {}
    number = m.core.meeting.queue(towards, key)
    m.b.act(f"system.tpush_to_{towards}", tile=value, split=split, id=number, **only)


def pop(
    m: Machine,
    towards: str,
    key: Hashable,
    shape: tuple[int, int],
    dtype: DataType,
    split: int = 0,
    lane: int | None = None,
    stuck: str | None = None,
) -> Expr:
    """Return the oldest tile of a queue, once there is one; `stuck` is what is said where there never is."""
    assert m.core is not None
    name, only = ("aic", {}) if towards == "aiv" else ("aiv", {"lane": lane})
    number = m.core.meeting.queue(towards, key)
    return m.b.do(f"system.tpop_from_{name}", shape=shape, dtype=dtype, split=split, id=number, stuck=stuck, **only)


def _ways(m: Machine) -> tuple[str, str]:
    """Return where this core's signals go, and where those for it come."""
    assert m.core is not None
    return ("aiv", "aic") if m.core.kind == CUBE else ("aic", "aiv")


def signal(m: Machine, key: Hashable, lane: int | None = None) -> None:
    """Say that something has happened."""
    nothing = m.b.tile("full", (1, 1), INT32, constant(0, INT32))
    push(m, _ways(m)[0], key, nothing, lane=lane)


def wait(m: Machine, key: Hashable, lane: int | None = None, stuck: str | None = None) -> None:
    """Wait until another core has said that something has happened."""
    pop(m, _ways(m)[1], key, (1, 1), INT32, lane=lane, stuck=stuck or _UNSET)


_UNSET = "the cores of this kernel wait for each other: nobody sets the event that is waited for here"
