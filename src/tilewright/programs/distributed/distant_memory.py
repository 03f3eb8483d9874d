"""Distant memory: what processes on several machines have of a plan, each in its own memory.

Windows are copies (`copies.py`), and so are the tensors that any rank writes (`changes.py`): a rank sends what it has
changed of them when others may look, and in the end. What a process says of itself it sends to the others, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.region import Array
from tilewright.interpret.hosts import Collective, WindowBuffer
from tilewright.native import futexes
from tilewright.ops.collectives import MEANINGS
from tilewright.passes.aliases import Footprint
from tilewright.programs.distributed.arrivals import Arrivals
from tilewright.programs.distributed.beats import Beats
from tilewright.programs.distributed.copies import SYNC, Copies
from tilewright.programs.distributed.distant_collectives import Joint
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.link import GRACE
from tilewright.programs.distributed.overlapped import Overlapped
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.replicated_writes import Changes
from tilewright.programs.distributed.segments import PAGE, TEXT, Control, Segment
from tilewright.programs.distributed.steps import Joins
from tilewright.programs.distributed.torch_works import SOON, Scratch, until_done

TOLD, ENDED, CHANGED = SYNC + 1, SYNC + 2, SYNC + 3
"""Messages: what a process says of itself, that all waits are over, and what was changed of a tensor."""
_SAID = slice(Control.ABORT + 1, max(Control) + 1)
"""The words that a process tells: all but the one that ends its own waits."""


class DistantMemory:
    """The memory of a plan whose processes share none."""

    def __init__(
        self, group: Group, overlap: Overlapped, args: Sequence[Any], written: Mapping[int, ParamDirection],
        footprints: Mapping[str, Footprint], gathered: Mapping[WindowBuffer, WindowBuffer],
    ) -> None:  # fmt: skip
        self.group = group
        self.plan = plan = overlap.plan
        self._overlap = overlap
        self.link = group.link()
        self.segments = [Segment.made(0) for _ in range(group.size)]
        for segment in self.segments:
            segment.close()
        self.own = self.segments[group.rank]
        self.link.made += 1
        self.number = self.link.made
        self.copies = Copies(self.link, self.number, plan, self.own.abort, gathered)
        self.parts = self.copies.parts
        self._changes = Changes(plan, group.rank, args, written, footprints)
        self._peers = [rank for rank in range(group.size) if rank != group.rank]
        self._beats = Beats(self._peers, lambda peer: self.link.try_to_send(peer, self.number, *self._said()))
        self._telling = threading.Lock()
        self._hearing = threading.Lock()
        self._arrivals = Arrivals(self._give_up_rows, self.copies.count)
        self._runs: list[Callable[[], None]] = []
        """What this rank does in collectives, which holds what torch works on."""
        self._scratch = Scratch()
        self.is_at_fault = False
        self.link.plans[self.number] = self

    @property
    def failure(self) -> BaseException | None:
        """Why what a peer holds was out of reach."""
        return self.copies.failure

    def opened(self) -> None:
        """Do nothing: nothing of others is open here."""

    def begin(self, args: Sequence[Any], timeout: float) -> Mapping[int, Array]:
        """Return copies of the tensors that are written."""
        self.link.timeout = timedelta(seconds=timeout + GRACE)
        self.copies.failure, self.is_at_fault = None, False
        return self._changes.begin(args)

    def bring(self, args: Sequence[Any], written: Mapping[int, Array]) -> None:
        """Copy what all ranks have written into arguments."""
        for position, array in written.items():
            args[position].data[...] = array

    def settle(self, turns: int) -> None:
        """Send others what this rank has changed of tensors; that and what it wrote to windows has arrived then."""
        self._send_changes(turns)
        self.copies.arrive()

    def meet(self, turns: int) -> None:
        """Send others what this rank has changed of tensors: what tells them that it has come arrives behind that."""
        self._send_changes(turns)
        self.copies.meet()

    def _send_changes(self, turns: int) -> None:
        for numbers, data in self._changes.since(turns):
            for peer in self._peers:
                self.copies.change(peer, [CHANGED, *numbers], data)

    def tell(self) -> None:
        """Send all others what this process says of itself."""
        with self._telling:
            for peer in self._peers:
                self.link.send(peer, self.number, *self._said())

    def beat(self) -> None:
        """Send it where nothing else is on its way: they learn that this process lives, and it that they do."""
        if self._telling.acquire(blocking=False):
            try:
                self._beats.beat()
            finally:
                self._telling.release()

    def _said(self) -> tuple[list[int], Array | None]:
        """Return the words of control as a message has them, and the text behind them once there is one."""
        self.own.words[Control.SENT], self.own.words[Control.HEARD] = self.copies.sent, self.copies.heard
        words: list[int] = self.own.words.tolist()  # before the text, which is there once they say so
        return [TOLD, *words[_SAID]], np.array(self.own.memory[TEXT:PAGE]) if words[Control.ANSWER] else None

    def end(self, how: int) -> None:
        """End the waits of all, who know then what this process says of itself."""
        self.own.words[Control.ABORT] = self.own.words[Control.ABORT] or how
        for peer in self._peers:
            self.link.try_to_send(peer, self.number, *self._said())
            self.link.try_to_send(peer, self.number, [ENDED, how], None)

    def give_up(self) -> None:
        """Wait for the rows of gathers that are on their way, and end what nobody waits for."""
        if not self._arrivals.are_over(SOON) or self.link.is_given_up:
            self.link.abandon((self._runs, self._arrivals))

    def ended(self) -> Sequence[int]:
        """Return the ranks whose processes have ended, and not once they had come to the last meeting of a run."""
        own = int(self.own.words[Control.EPOCH])
        over = [rank for rank, each in enumerate(self.segments) if not own % 2 and each.words[Control.EPOCH] >= own]
        return sorted(self.link.lost.difference(over))

    def hear(self, source: int, numbers: Sequence[int], data: Array) -> Array | None:
        """Take a message; return what is asked for. What goes wrong is this rank's mistake, and ends its waits."""
        try:
            with self._hearing:
                self._beats.heard[source] += 1
                return self._heard(source, numbers, data)
        except Exception as error:
            self.is_at_fault = True
            self._fail(error)
            return None

    def _heard(self, source: int, numbers: Sequence[int], data: Array) -> Array | None:
        if numbers[0] == TOLD:
            segment = self.segments[source]
            if len(data):
                segment.memory[TEXT:PAGE] = data
            segment.words[_SAID] = numbers[1 : _SAID.stop]
            for word in (Control.EPOCH, Control.TURNS):
                futexes.wake(segment.memory.ctypes.data + 8 * word)
        elif numbers[0] == ENDED:
            self.own.words[Control.ABORT] = self.own.words[Control.ABORT] or numbers[1]
        elif numbers[0] == CHANGED:
            self._changes.take(numbers[1], numbers[2], data)
            self.copies.heard += 1
        else:
            return self.copies.hear(numbers, data)
        return None

    @property
    def joins(self) -> Joins:
        """What this rank does in a collective: what torch does, on its own windows."""
        return self._joined

    def _joined(self, action: Collective) -> Callable[[], None]:
        rank, number = self.group.rank, 1 + next(k for k, each in enumerate(self.plan.actions) if each is action)
        if id(action) in self._overlap.ends:
            return partial(self._end_gather, self._overlap.ends[id(action)])
        windows = {name: self.parts[window.buffer].array(rank, window) for name, window in action.windows.items()}
        if len(action.domain) == 1:
            return lambda: MEANINGS[action.name]([windows], **action.options)
        group = partial(self.link.domain, action.domain)
        group()  # which all make when they plan
        wait, target = partial(self.until_done, action.domain, number), action.windows.get("target")
        has_own_row = target is not None and self.copies.is_gathered(target.buffer)
        joint = Joint(action, rank, windows, group, wait, self._scratch.of, has_own_row=has_own_row)
        run, begun = joint.made_ready(), self._overlap.begun.get(id(action))
        if begun is not None:
            cells = self.parts[begun.cells.buffer].array(rank, begun.cells)[:, 0]
            wait = partial(until_done, action.domain, self._check)
            run = self._arrivals.begun(action, joint, begun.pieces, cells, wait)
        self._runs.append(run)

        def join() -> None:
            self.copies.arrive()
            self.own.words[Control.JOINED] = number
            try:
                run()
            except BaseException:
                self.link.is_given_up = True
                raise
            self.own.words[Control.AWAITED] = 0

        return join

    def _end_gather(self, gather: Collective) -> None:
        words = self.own.words
        self._arrivals.end(gather, lambda: self._look(int(words[Control.JOINED]), self.group.rank))
        words[Control.AWAITED] = 0

    def _give_up_rows(self, error: BaseException) -> None:
        self.link.is_given_up = True
        if not isinstance(error, Ended):
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.copies.failure = self.copies.failure or error
        self.own.words[Control.ABORT] = self.own.words[Control.ABORT] or 1

    def until_done(self, domain: Sequence[int], number: int, work: Any) -> None:
        """Wait for what torch does; Ended where the run is over, after which nobody may use the link again."""

        def look() -> None:
            missing = [rank for rank in domain if self.segments[rank].words[Control.JOINED] < number]
            self._look(number, (*missing, *domain)[0])

        until_done(domain, look, work)

    def _check(self) -> None:
        if self.own.words[Control.ABORT]:
            raise Ended("the run was ended")

    def _look(self, number: int, rank: int) -> None:
        """Say that this one waits for a rank, and a collective; Ended where the run is over."""
        words = self.own.words
        words[Control.WORD], words[Control.NUMBER], words[Control.AWAITED] = Control.JOINED, number, rank + 1
        if words[Control.ABORT]:
            raise Ended(f"it waits for rank {rank}")
