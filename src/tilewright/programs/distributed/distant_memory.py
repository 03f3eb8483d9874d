"""Distant memory: what processes on several machines have of a plan, each in its own memory.

Windows are copies (`copies.py`), and so are the tensors that any rank writes (`changes.py`): a rank sends what it has
changed of them when others may look, and in the end. What a process says of itself it sends to the others, too.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.region import Array
from tilewright.interpret.hosts import WindowBuffer
from tilewright.native import futexes
from tilewright.passes.aliases import Footprint
from tilewright.programs.distributed.beats import Beats
from tilewright.programs.distributed.copies import SYNC, Copies
from tilewright.programs.distributed.early import Early
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.joining import Joining
from tilewright.programs.distributed.joint_waits import JointWaits
from tilewright.programs.distributed.link import GRACE
from tilewright.programs.distributed.overlapped import Overlapped
from tilewright.programs.distributed.replicated_writes import Change, Changes
from tilewright.programs.distributed.segments import PAGE, TEXT, Control, Segment
from tilewright.programs.distributed.steps import Joins

TOLD, ENDED, CHANGED, COME = range(SYNC + 1, SYNC + 5)
"""Messages: what a process says of itself, that all waits are over, what was changed of a tensor, and the last such of
a run together with the first."""
_SAID = slice(Control.ABORT + 1, max(Control) + 1)
"""The words that a process tells: all but the one that ends its own waits."""


class DistantMemory:
    """The memory of a plan whose processes share none."""

    is_shared = False

    def __init__(
        self, group: Group, overlap: Overlapped, args: Sequence[Any], written: Mapping[int, ParamDirection],
        footprints: Mapping[str, Footprint], gathered: Mapping[WindowBuffer, WindowBuffer],
        *, is_met_first: bool,
    ) -> None:  # fmt: skip
        self.group = group
        plan = overlap.plan
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
        self.is_met_first = is_met_first or group.links > 1 or self._changes.begin_alike
        """Whether all ranks wait for each other before a run; where a link was given up they find out there who is not
        coming, which costs no further link."""
        if self._changes.signalled:
            self.copies.ahead = self._tell_ahead
        self._early = Early()
        self._peers = [rank for rank in range(group.size) if rank != group.rank]
        self._beats = Beats(self._peers, lambda peer: self.link.try_to_send(peer, self.number, *self._said()))
        self._telling, self._telling_ahead = threading.Lock(), threading.Lock()
        self._hearing = threading.Lock()
        self.waits = JointWaits(self.link, self.segments)
        self._joining = Joining(self, overlap, is_crowded=not group.has_idle_cores)
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
        with self._hearing:
            found = self._changes.begin(args)
            for change in self._early.begun():
                self._changes.take(*change)
        return found

    def bring(self, args: Sequence[Any], written: Mapping[int, Array]) -> None:
        """Copy what all ranks have written into arguments."""
        for position, array in written.items():
            args[position].data[...] = array
        with self._hearing:
            self._end(self._early.over())

    def settle(self, turns: int) -> None:
        """Send others what this rank has changed of tensors; that and what it wrote to windows has arrived then."""
        self._send_changes(turns)
        self.copies.arrive()

    def come(self, number: int, turns: int) -> None:
        """Send others what this rank has changed of tensors, and behind that, or with it, that it has come."""
        last = self._send_changes(turns, is_last=not self.own.words[Control.ANSWER])  # whose text goes with words alone
        self.copies.meet()
        with self._telling:
            for _ in self._peers if last is not None else ():
                self.copies.count(is_here=False)
            told, text = self._said(number)
            message = (told, text) if last is None else ([COME, *last[0], *told[1:]], last[1])
            for peer in self._peers:
                self.link.send(peer, self.number, *message)
            self.own.words[Control.EPOCH] = number  # not before it is told: nobody is to hear that ahead of the changes

    def _send_changes(self, turns: int, *, is_last: bool = False) -> Change | None:
        """Send what was changed in so many turns; return the last of it where something is to go with it."""
        held: Change | None = None
        for change in self._changes.since(turns):
            self._change(held)
            held = change
        if is_last:
            return held
        self._change(held)
        return None

    def _tell_ahead(self) -> None:
        """Send what this rank has changed of tensors that others may change behind its signal."""
        with self._telling_ahead:
            for change in self._changes.ahead():
                self._change(change)

    def _change(self, change: Change | None) -> None:
        if change is not None:
            for peer in self._peers:
                self.copies.change(peer, [CHANGED, *change[0]], change[1])

    def tell(self) -> None:
        """Send all others what this process says of itself."""
        with self._telling:
            for peer in self._peers:
                self.link.send(peer, self.number, *self._said())

    def beat(self) -> None:
        """Send it where nothing else is on its way: they learn that this process lives, and it that they do.

        What its rank swaps with others meanwhile ends where the run is over.
        """
        self.waits.look_on()
        self.copies.look_on()
        if self._telling.acquire(blocking=False):
            try:
                self._beats.beat()
            finally:
                self._telling.release()

    def _said(self, number: int | None = None) -> tuple[list[int], Array | None]:
        """Return the words of control as a message has them, and the text behind them once there is one.

        With a number they say that this process has come to that meeting.
        """
        self.own.words[Control.SENT], self.own.words[Control.HEARD] = self.copies.sent, self.copies.heard
        words: list[int] = self.own.words.tolist()  # before the text, which is there once they say so
        words[Control.EPOCH] = words[Control.EPOCH] if number is None else number
        return [TOLD, *words[_SAID]], np.array(self.own.memory[TEXT:PAGE]) if words[Control.ANSWER] else None

    def end(self, how: int) -> None:
        """End the waits of all, who know then what this process says of itself."""
        self._end(how)
        self.waits.look_on()
        for peer in self._peers:
            self.link.try_to_send(peer, self.number, *self._said())
            self.link.try_to_send(peer, self.number, [ENDED, how, self._early.run], None)

    def give_up(self) -> None:
        """Wait for the rows of gathers that are on their way, and end what nobody waits for."""
        if not self._joining.is_over() or self.link.is_given_up:
            self.link.abandon(self._joining)

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
            self.fail(error)
            return None

    def _heard(self, source: int, numbers: Sequence[int], data: Array) -> Array | None:
        if numbers[0] == TOLD:
            if len(data):
                self.segments[source].memory[TEXT:PAGE] = data
            self._hear_words(source, numbers[1:])
        elif numbers[0] == ENDED:
            self._end(self._early.ended(numbers[1], numbers[2]))
        elif numbers[0] in (CHANGED, COME):
            if not self._early.held(self.segments[source], numbers[1], numbers[2], data):
                self._changes.take(numbers[1], numbers[2], data)
            self.copies.heard += 1
            if numbers[0] == COME:
                self._hear_words(source, numbers[3:])
        else:
            return self.copies.hear(numbers, data)
        return None

    def _hear_words(self, source: int, words: Sequence[int]) -> None:
        """Take what a process says of itself, and wake who waits for it to say so."""
        segment = self.segments[source]
        segment.words[_SAID] = words[: _SAID.stop - _SAID.start]
        for word in (Control.EPOCH, Control.TURNS):
            futexes.wake(segment.memory.ctypes.data + 8 * word)

    def _end(self, how: int) -> None:
        self.own.words[Control.ABORT] = self.own.words[Control.ABORT] or how

    @property
    def joins(self) -> Joins:
        """What this rank does in a collective: what torch does, on its own windows."""
        return self._joining.joined

    def fail(self, error: BaseException) -> None:
        """End the waits of this rank, which is told why."""
        self.copies.failure = self.copies.failure or error
        self._end(1)
