"""Contested memory: what of the caller's tensors several ranks touch, one of them writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.core.region import Region
from tilewright.interpret.dependences import Stretch
from tilewright.interpret.hosts import Dispatch, Plan
from tilewright.interpret.shadow import reach
from tilewright.passes.aliases import Footprint


def contested(plan: Plan, footprints: Mapping[str, Footprint]) -> Iterator[Stretch]:
    """Yield where such memory begins and ends: all of what its dispatches are given, as far as that meets."""
    low = high = 0
    ranks, is_written = set[int](), False
    for start, stop, rank, writes in [*sorted(_touches(plan, footprints)), (1 << 64, 1 << 64, 0, False)]:
        if start >= high:
            if is_written and len(ranks) > 1:
                yield low, high
            low, high, ranks, is_written = start, stop, set[int](), False
        high, is_written = max(high, stop), is_written or writes
        ranks.add(rank)


def _touches(plan: Plan, footprints: Mapping[str, Footprint]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield where what a dispatch touches begins and ends, its rank, and whether it writes there."""
    for action in plan.actions:
        if isinstance(action, Dispatch):
            found = footprints[action.function]
            for position in found.reads | found.writes:
                arg = action.args[position]
                if isinstance(arg, Region) and arg.data.size:
                    yield *reach(arg.data), action.rank, position in found.writes
