"""Added tensors: those of the caller's that several ranks add to which share no memory, one after the other.

Each works on a copy, and sends what it has changed: two that added at the same time would each lose what the other has
added. Ranks that have windows may wait for each other meanwhile, and cannot come in turns.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.region import Region
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Dispatch, Plan
from tilewright.interpret.shadow import reach
from tilewright.passes.aliases import Footprint
from tilewright.programs.distributed.replicated_writes import has_windows


def order_adds(plan: Plan, footprints: Mapping[str, Footprint]) -> None:
    """Let ranks that add to one tensor do so in turns; ExecutionError where they have windows."""
    seen: list[tuple[int, int, Dispatch]] = []
    adds = False
    for action in plan.actions:
        if isinstance(action, Dispatch):
            given = (action.args[k] for k in footprints[action.function].adds)
            found = [reach(arg.data) for arg in given if isinstance(arg, Region)]
            adds = adds or bool(found)
            for low, high in found if has_windows(action) else ():
                _check(action, [other for start, stop, other in seen if start < high and low < stop])
                seen.append((low, high, action))
    if adds:
        plan.settle(footprints, adds_in_turn=True)


def _check(action: Dispatch, others: list[Dispatch]) -> None:
    other = next((each for each in others if each.rank != action.rank), None)
    if other is not None:
        message = f"ranks {other.rank} and {action.rank} add to one tensor, and share no memory"
        help = "let them add to a window, or to rows of their own, or in a function that is given no windows"
        notes = [f"rank {other.rank} is dispatched at {other.span}"]
        raise ExecutionError(message, spans=[action.span], notes=notes, help=help)
