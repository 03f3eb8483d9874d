"""Steps: how far the turns of a loop are apart; loops count up."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.core.extents import bounds
from tilewright.pto.machine.machine import Machine


def check_step(m: Machine, step: Expr) -> None:
    """Stop the program where a step is not positive; nothing is left of it where that cannot be."""
    reach = bounds(step)
    if reach is None or reach[0] < 1:
        is_up = m.b.scalar("ge", step, m.b.index(1))
        m.b.act("system.device_assert", condition=is_up, message="a loop counts up: its step must be positive")
