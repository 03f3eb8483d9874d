"""Own tensors: what a host function has made for itself, of which each process has one, and no other's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.region import Region
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Dispatch, Plan
from tilewright.interpret.shadow import reach
from tilewright.passes.aliases import Footprint


def check_own_tensors(plan: Plan, footprints: Mapping[str, Footprint], args: Sequence[Any]) -> None:
    """Raise where a rank reads what another one has written to a tensor that is none of the arguments."""
    given = [reach(arg.data) for arg in args if isinstance(arg, Region)]
    written: list[tuple[int, int, int]] = []
    for action in plan.actions:
        if not isinstance(action, Dispatch):
            continue
        places = ((k, reach(arg.data)) for k, arg in enumerate(action.args) if isinstance(arg, Region))
        own = [(k, *place) for k, place in places if not any(a <= place[0] and place[1] <= b for a, b in given)]
        for k, low, high in own:
            if k in footprints[action.function].reads:
                _check(action, [rank for a, b, rank in written if a < high and b > low])
        written += [(low, high, action.rank) for k, low, high in own if k in footprints[action.function].writes]


def _check(action: Dispatch, writers: Sequence[int]) -> None:
    other = next((rank for rank in writers if rank != action.rank), None)
    if other is not None:
        message = f"rank {action.rank} reads what rank {other} has written to a tensor that the host function makes"
        help = "over processes each rank has one of its own: make it a parameter, `t: pl.InOut[...]`, and pass it"
        raise ExecutionError(message, spans=[action.span], help=help)
