"""Arrivals: the rows of a gather that goes on while a rank reads them, and tells it how many of each are here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tilewright.core.region import Array
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Collective
from tilewright.programs.distributed.distant_collectives import Joint
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.team import LOOK, TEAM


class Arrival:
    """One gather of a plan: begun once all ranks have come, waited for by a thread of its own, and over.

    `wait` ends once what torch does is done, or the run. `failed` is told why rows do not come, and `count` that
    something is on its way or here.
    """

    def __init__(
        self, joint: Joint, pieces: int, cells: Array, wait: Callable[[Any], None],
        failed: Callable[[BaseException], None], count: Callable[[bool], None],
    ) -> None:  # fmt: skip
        self._joint = joint
        self._pieces = pieces
        self._cells = cells
        self._wait = wait
        self._failed = failed
        self._count = count
        self._works: list[list[Any]] = []
        self.is_over = threading.Event()
        self.is_over.set()

    def begin(self) -> None:
        """Let rows be on their way: this rank's own are here."""
        self.is_over.clear()
        self._cells[...] = 0
        self._count(False)
        self._works = self._joint.begin_gather(self._pieces)
        self._cells[self._joint.me] = self._pieces

    def run(self) -> None:
        """Tell the rank of pieces as they come, until all are here and gone."""
        try:
            for works in self._works:
                for rank, work in enumerate(works):
                    self._wait(work)
                    self._cells[rank] += rank != self._joint.me
            self._works = []
            self._count(True)
        except (ExecutionError, Ended) as error:
            self._failed(error)
        self.is_over.set()


class Arrivals:
    """The gathers of a plan that go on while their rows are read."""

    def __init__(self, failed: Callable[[BaseException], None], count: Callable[[bool], None]) -> None:
        self._failed = failed
        self._count = count
        self._of: dict[int, Arrival] = {}

    def begun(
        self, gather: Collective, joint: Joint, pieces: int, cells: Array, wait: Callable[[Any], None]
    ) -> Callable[[], None]:
        """Return what begins a gather, once its ranks have met: none waits then for one that never comes."""
        arrival, meet = Arrival(joint, pieces, cells, wait, self._failed, self._count), joint.barrier()
        self._of[id(gather)] = arrival

        def begin() -> None:
            meet()
            arrival.begin()
            TEAM.grown(2)[1].put(arrival.run)  # the first thread is this rank's

        return begin

    def end(self, gather: Collective, look: Callable[[], None]) -> None:
        """Wait until the rows of a gather are here, and this rank's with the others; `look` now and then."""
        while not self._of[id(gather)].is_over.wait(LOOK):
            look()

    def are_over(self, seconds: float) -> bool:
        """Return whether nothing is on its way, so many seconds from now at the latest."""
        return all([each.is_over.wait(seconds) for each in self._of.values()])
