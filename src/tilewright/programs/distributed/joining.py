"""Joining: what a rank that shares no memory does in the collectives of a plan, together with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.interpret.hosts import Collective, WindowBuffer
from tilewright.ops.collectives import MEANINGS
from tilewright.programs.distributed.arrivals import Arrivals
from tilewright.programs.distributed.copies import Copies
from tilewright.programs.distributed.distant_collectives import Joint
from tilewright.programs.distributed.early import are_apart
from tilewright.programs.distributed.joint_waits import JointWaits
from tilewright.programs.distributed.link import Link
from tilewright.programs.distributed.overlapped import Overlapped
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control, Segment
from tilewright.programs.distributed.torch_works import SOON, Scratch, until_done
from tilewright.programs.distributed.windows import Parts


class Memory(Protocol):
    """What collectives need of a plan's memory."""

    link: Link
    own: Segment
    copies: Copies
    parts: dict[WindowBuffer, Parts]
    waits: JointWaits

    def fail(self, error: BaseException) -> None:
        """End the waits of this rank, which is told why."""
        ...


class Joining:
    """The collectives of a plan, as one of its ranks joins them."""

    def __init__(self, memory: Memory, overlap: Overlapped, *, is_crowded: bool) -> None:
        self._memory = memory
        self._is_crowded = is_crowded
        self._overlap = overlap
        self._are_apart = are_apart(overlap.plan, overlap.program)
        self._arrivals = Arrivals(self._give_up_rows, memory.copies.count)
        self._runs: list[Callable[[], None]] = []
        """What this rank does in collectives, which holds what torch works on."""
        self._scratch = Scratch()

    def is_over(self) -> bool:
        """Return whether no rows of gathers are on their way any more, or soon will not be."""
        return self._arrivals.are_over(SOON)

    def joined(self, action: Collective) -> Callable[[], None]:
        """Return what this rank does in a collective."""
        memory, rank = self._memory, self._memory.link.rank
        number = 1 + next(k for k, each in enumerate(self._overlap.plan.actions) if each is action)
        if id(action) in self._overlap.ends:
            return partial(self._end_gather, self._overlap.ends[id(action)])
        held = {
            name: window.live(memory.parts[window.buffer].array(rank, window))
            for name, window in action.windows.items()
        }
        windows = {name: np.ascontiguousarray(array) for name, array in held.items()}
        packed = {name: windows[name] for name in held if windows[name] is not held[name]}
        if len(action.domain) == 1:
            return lambda: MEANINGS[action.name]([windows], **action.options)
        group = partial(memory.link.domain, action.domain)
        group()  # which all make when they plan
        waits = memory.waits
        wait, swap = (partial(until, action.domain, number) for until in (waits.until_done, waits.until_swapped))
        target = action.windows.get("target")
        has_own_row = target is not None and memory.copies.is_gathered(target.buffer)
        joint = Joint(
            action, rank, windows, group, wait, swap, self._scratch.of,
            has_own_row=has_own_row, is_crowded=self._is_crowded, are_apart=self._are_apart,
        )  # fmt: skip
        run, begun = joint.made_ready(), self._overlap.begun.get(id(action))
        if begun is not None:
            cells = memory.parts[begun.cells.buffer].array(rank, begun.cells)[:, 0]
            wait = partial(until_done, action.domain, self._check)
            run = self._arrivals.begun(action, joint, begun.pieces, cells, wait)
        run = _on_copies(run, held, packed) if packed else run
        self._runs.append(run)
        return partial(self._join, number, run)

    def _join(self, number: int, run: Callable[[], None]) -> None:
        memory = self._memory
        if memory.copies.ahead is not None:
            memory.copies.ahead()
        memory.copies.arrive()
        memory.own.words[Control.JOINED] = number
        try:
            run()
        except BaseException:
            memory.link.is_given_up = True
            raise
        memory.own.words[Control.AWAITED] = 0

    def _end_gather(self, gather: Collective) -> None:
        words = self._memory.own.words
        self._arrivals.end(gather, lambda: self._memory.waits.look(int(words[Control.JOINED]), self._memory.link.rank))
        words[Control.AWAITED] = 0

    def _give_up_rows(self, error: BaseException) -> None:
        self._memory.link.is_given_up = True
        if not isinstance(error, Ended):
            self._memory.fail(error)

    def _check(self) -> None:
        if self._memory.own.words[Control.ABORT]:
            raise Ended("the run was ended")


def _on_copies(run: Callable[[], None], held: Mapping[str, Array], packed: Mapping[str, Array]) -> Callable[[], None]:
    """Return a run that works on packed copies of windows, whose elements lie apart."""

    def copied() -> None:
        for name, array in packed.items():
            np.copyto(array, held[name])
        run()
        for name, array in packed.items():
            np.copyto(held[name], array)

    return copied
