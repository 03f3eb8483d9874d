"""Launches: a function run by every work item there is."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ops.builder import known
from tilewright.pto.machine.cores import CUBE
from tilewright.pto.machine.machine import Machine, Place
from tilewright.pto.machine.phases import Phases, meeting_size
from tilewright.pto.machine.threads import MOST_THREADS, WARP, each_of, total
from tilewright.pto.machine.tiles import check_range
from tilewright.pto.machine.values import Lowered
from tilewright.pto.module import Op


def launch(m: Machine, site: Op, name: str, extents: Place, arguments: Sequence[Lowered]) -> None:
    """Let every work item run the function of a name: one after the other, or in step where they meet."""
    if m.core is not None and m.core.kind == CUBE:
        return  # work items are the vector cores'
    for extent, axis in zip(extents, "xyz", strict=True):
        check_range(m, extent, MOST_THREADS, f"a launch has 0 to {MOST_THREADS} work items along {axis}")
    count = total(m, extents)
    check_range(m, count, MOST_THREADS, f"a launch has at most {MOST_THREADS} work items")
    with m.calling(site, name) as func:
        size = meeting_size(m, func)
        if size == 1:
            with each_of(m, extents):
                m.function(func, arguments)
        elif size <= WARP:
            with m.b.loop(0, count, WARP, hint="warp") as first:
                left = m.b.scalar("sub", count, first)
                Phases(m, extents, WARP, first, m.b.least(m.b.index(WARP), left)).function(func, arguments)
        else:
            room = -(-(known(count) or MOST_THREADS) // WARP) * WARP
            Phases(m, extents, room, m.b.index(0), count).function(func, arguments)
