"""Carrying: what branches and loops hand on, in variables, from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.values import Lowered, Pointer, Tile
from tilewright.records import record


def refuse_unlike(m: Machine, value: Lowered, other: Lowered) -> None:
    """Refuse two values that cannot stand for one: where they lie is known before the program runs."""
    if value.frame != other.frame and None not in (value.frame, other.frame):
        one, two = (v if isinstance(v, Pointer) else getattr(v, "pointer", None) for v in (value, other))
        if isinstance(one, Pointer) and isinstance(two, Pointer) and m.memory.join(one, two):
            return
        raise UnsupportedFeatureError(
            "this would be in one buffer or another, as the running program decides",
            help="choose an offset or an address instead, or branch around the ops that use it",
        )


@record
class Carried:
    """A value that a loop or branch hands on, in variables."""

    like: Lowered
    variables: tuple[Var, ...]

    @property
    def value(self) -> Lowered:
        """The value that the variables make."""
        if isinstance(self.like, Tile) and self.like.slot is not None:
            return self.like
        return self.like.having(self.variables)


def carried(m: Machine, values: Sequence[Lowered], hint: str) -> list[Carried]:
    """Return fresh variables for every part of some values, with no value yet."""
    return [Carried(v, tuple(m.b.variable(part.type, hint) for part in m.parts(v))) for v in values]


def hand_on(m: Machine, into: Sequence[Carried], values: Sequence[Lowered]) -> None:
    """Assign the parts of values to variables, all of them read before any is written."""
    pairs: list[tuple[Var, Expr]] = []
    for one, value in zip(into, values, strict=True):
        refuse_unlike(m, one.like, value)
        pairs += zip(one.variables, m.parts(value), strict=False)
    targets = {var for var, _ in pairs}
    copies = [(var, m.b.held(part, "was") if part in targets and part is not var else part) for var, part in pairs]
    for var, part in copies:
        if part is not var:
            m.b.assign(var, part)


def check_step(m: Machine, step: Expr) -> None:
    """Stop the program where a step is not positive; nothing is left of it where that cannot be."""
    reach = bounds(step)
    if reach is None or reach[0] < 1:
        is_up = m.b.scalar("ge", step, m.b.index(1))
        m.b.act("system.device_assert", condition=is_up, message="a loop counts up: its step must be positive")
