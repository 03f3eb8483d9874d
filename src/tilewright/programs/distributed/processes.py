"""Runs over processes: each does the turns of its rank, on memory that all of them share or send each other.

The host function runs in every process and plans the same, and every process has all tensors that any rank writes in
the end. Ranks meet by words that each writes for itself. A process that fails says why and ends the waits of all
others; one that ends or does not answer is named by them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tilewright.arrays import np
from tilewright.core.region import Region, whole
from tilewright.core.world import UNHEARD
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Plan
from tilewright.native.domains import NAPS, SLEEPS
from tilewright.programs.distributed.group import Group, Leaves
from tilewright.programs.distributed.launched import absence
from tilewright.programs.distributed.meetings import Absent
from tilewright.programs.distributed.process_progress import ProcessProgress
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control
from tilewright.programs.distributed.shared_memory import ProcessMemory
from tilewright.programs.distributed.steps import Steps
from tilewright.programs.distributed.team import GRACE, LOOK, STUCK, TEAM, said
from tilewright.programs.distributed.waits import Looks, Patience
from tilewright.programs.distributed.whereabouts import Whereabouts

PATIENCE = 2.0
"""Seconds that a process whose run is over has to say so."""
FAILED, LATE, ALONE, VAIN = 1, 2, 3, 4
"""How a run came to be over."""


class CalledOtherwise(Exception):
    """Another process was called with other arguments, and plans for them while this one waits for it."""


class ProcessRun:
    """What this process does of a plan, again and again."""

    def __init__(self, group: Group, memory: ProcessMemory, plan: Plan, steps: Steps) -> None:
        self.group = group
        self._failures = group.failures
        self.memory = memory
        self.segments = memory.segments
        self.progress = ProcessProgress(group.rank, memory)
        self.whereabouts = Whereabouts(group.rank, memory)
        self.number = 0
        self.steps = steps
        self.turns = [len(turns) for turns in plan.turns]
        self.may_look = True
        """Whether a rank that sleeps does nothing else: it has one thread, or no turns side by side."""
        self.looks = Looks()
        self.failure: BaseException | None = None
        self.done = threading.Event()

    def run(self, args: Sequence[Any], timeout: float, starts: Mapping[int, int]) -> None:
        """Do what this process has to, and leave in `args` what all ranks wrote; raise what ended the run.

        `starts` says of arguments that only stand for others where those begin, by their positions.
        """
        self.number += 1
        if self.segments[self.group.rank].words[Control.ABORT]:
            self._come_late()
        shared = self.memory.begin(args, timeout)
        self.segments[self.group.rank].begin()
        self.looks = Looks()
        bases = [arg.data.ctypes.data if isinstance(arg, Region) else 0 for arg in args]
        for position, base in (*starts.items(), *((k, array.ctypes.data) for k, array in shared.items())):
            bases[position] = base
        self.steps.begin(bases)
        self.failure = None
        self.done.clear()
        with TEAM.lock:
            TEAM.grown(1)[0].put(self._work)
            self._watch(timeout)
        if self.failure is not None:
            self._fail(self.failure)
        self.memory.bring(args, shared)

    def _come_late(self) -> None:
        """Raise why the others have ended a run that this process comes to, or that they have left it for another."""
        words = [segment.words for segment in self.segments]
        is_begun = any(each[Control.EPOCH] >= self._first_meeting for each in words)
        if words[self.group.rank][Control.ABORT] == ALONE or not is_begun:
            raise CalledOtherwise
        self._fail(self._explained(Ended("it comes to a run that is over"), ""))

    def _fail(self, error: BaseException) -> NoReturn:
        self.group.failures += 1  # what has failed for another process may be the run of another program
        raise error

    @property
    def _first_meeting(self) -> int:
        """Which meeting of all the run begins with, whether they wait there or not: each has two."""
        return 2 * self.number - 1

    def _work(self) -> None:
        try:
            self.progress.begin()
            self.steps.run(self.group.rank, self.progress)
            self.progress.meet()
        except BaseException as error:
            self.failure = self.memory.failure or error
        self.done.set()

    def _watch(self, timeout: float) -> None:
        """Wait for this process's part; end all where another process has ended, or they take too long."""
        own, patience, looks = self.segments[self.group.rank].words, Patience(), 0
        left: Sequence[Leaves] = ()
        try:
            while not self.done.wait(LOOK):
                left = self._left() or left
                own[Control.BEAT] += 1
                self.memory.beat()
                looks += bool(own[Control.ABORT])
                if looks > GRACE:
                    self.steps.stop()
                late = patience.longest({self.group.rank: self._waiting()}) > timeout
                if not own[Control.ABORT] and (late or self.whereabouts.is_alone() or self.memory.ended()):
                    self.memory.end(LATE if late else ALONE if self.whereabouts.is_alone() else FAILED)
                elif not own[Control.ABORT] and self._is_stuck():
                    self.memory.end(VAIN)
        except BaseException as interrupt:
            self._explained(interrupt, "")
            self.steps.stop()
            self.done.wait(PATIENCE)
            raise
        for other in left if self.failure is None else ():  # all forget them otherwise
            other.whereabouts.leave(False)
        if self.failure is not None and own[Control.ABORT] == ALONE:
            raise CalledOtherwise
        if self.failure is not None:
            late = f"ranks have waited for each other for more than {timeout:g} s"
            why = {LATE: late, VAIN: STUCK}.get(int(own[Control.ABORT]), "")
            absence = self._absence(timeout)
            self.failure = self._explained(absence or self.failure, why, is_own=absence is not None)

    def _left(self) -> Sequence[Leaves]:
        """Return all other runs where some have not come to this one: they learn that this process is in no other."""
        others = [run for run in self.group.runs if run is not self] if self._absent() else []
        for run in others:
            run.whereabouts.leave(True, self._absent)
        return others

    def _absent(self) -> list[int]:
        """Return the ranks that have not come to the run."""
        return [k for k, each in enumerate(self.segments) if each.words[Control.EPOCH] < self._first_meeting]

    def _absence(self, timeout: float) -> ExecutionError | None:
        """Return that ranks have not come in time, where this one has waited for them."""
        absent, own = self._absent(), self.segments[self.group.rank].words
        is_late = own[Control.ABORT] == LATE and self.group.rank not in absent
        return absence(Absent(absent), self.group.rank, timeout) if is_late and absent else None

    def _waiting(self) -> tuple[object, float]:
        """Return which wait this rank is in, if any, and a number that grows in it.

        One for another process to be done is a new wait as often as that one shows that it is at work.
        """
        own = self.progress.words[self.group.rank]
        if not own[Control.AWAITED]:
            return int(own[SLEEPS]), int(own[NAPS])
        rank, word, number = (int(own[each]) for each in (Control.AWAITED, Control.WORD, Control.NUMBER))
        beat = int(self.progress.words[rank - 1][Control.BEAT]) if word == Control.EPOCH else 0
        return (rank, word, number, beat), time.monotonic()

    def _is_stuck(self) -> bool:
        """Return whether all ranks that are not done have waited since the last look but one."""
        words = self.progress.words
        wanted = SLEEPS, NAPS, Control.TURNS, Control.SENT, Control.HEARD
        sleeps, naps, turns, sent, heard = ([int(each[k]) for each in words] for k in wanted)
        left = len(words) - self.progress.blocked()
        in_vain = self.looks.are_in_vain(sleeps, naps, left, (*turns, *sent, *heard))
        return self.may_look and in_vain and sum(sent) == sum(heard)

    @property
    def is_over(self) -> bool:
        """Whether the others do not come to it any more: their group was left, or a call on it has failed here."""
        return self.group.is_left or self.group.failures != self._failures

    def _explained(self, error: BaseException, why: str, *, is_own: bool = False) -> BaseException:
        """Return why a run is over: this rank's own mistake, that of another one, or who does not answer."""
        rank, own = self.group.rank, self.segments[self.group.rank]
        is_own |= self.memory.is_at_fault or not (isinstance(error, Ended) or own.words[Control.ABORT])
        own.words[Control.FAILED] = self.number if is_own else 0
        own.say(self.number, str(error) if isinstance(error, Ended) else said(error))
        self.memory.end(FAILED)
        if is_own:
            _note(error, f"on rank {rank}")
            return error
        silent = self._silent()
        told = {peer: each for peer, each in enumerate(self.segments) if peer not in silent}
        failed = [peer for peer, each in told.items() if each.words[Control.FAILED] == self.number]
        if failed:
            return ExecutionError(f"rank {failed[0]} failed: {told[failed[0]].said()}")
        ended = self.memory.ended()
        if ended:
            return ExecutionError(f"the process of rank {ended[0]} has ended while rank {rank} was running")
        help = UNHEARD if why == STUCK else ""
        notes = [f"rank {peer}: {each.said()}" for peer, each in told.items() if peer != rank]
        notes += [f"rank {peer} does not answer: {self._place(peer)}" for peer in silent]
        if isinstance(error, ExecutionError):
            error.message = f"{why}: {error.message}" if why else error.message
            error.notes, error.hint = (*error.notes, f"on rank {rank}", *notes), error.hint or help
            return error
        return ExecutionError(f"{why or 'the run was ended'}: {error}", notes=[f"on rank {rank}", *notes], help=help)

    def _silent(self) -> list[int]:
        """Return the ranks that do not say in time that their run is over."""
        until = time.monotonic() + PATIENCE
        while True:
            silent = [p for p, each in enumerate(self.segments) if each.words[Control.ANSWER] != self.number]
            is_over = {*silent} <= {*self.memory.ended(), *self._absent()}
            if is_over or time.monotonic() > until:
                return silent
            time.sleep(0.005)

    def _place(self, rank: int) -> str:
        if rank in self._absent():
            return "it has not come to this run, and may be in another program"
        return f"it has had {int(self.segments[rank].words[Control.TURNS])} of {self.turns[rank]} turns"


def process_run(group: Group, memory: ProcessMemory, plan: Plan, make: Callable[[], Steps]) -> ProcessRun:
    """Return a plan made ready for this process, once all others have it; what goes wrong here ends it in all."""
    try:
        run = ProcessRun(group, memory, plan, make())
        group.exchanged(None, "the run")
        group.runs.add(run)
    except BaseException as error:
        group.tell_failure(said(error))
        raise
    finally:
        memory.opened()
    return run


def _note(error: BaseException, text: str) -> None:
    if isinstance(error, ExecutionError):
        error.notes = (*error.notes, text)


def shared_args(args: Sequence[Any], written: Sequence[int]) -> list[Any]:
    """Return arguments as plans of processes see them: those that are written lie packed."""
    return [whole(np.ascontiguousarray(a.data)) if k in written else a for k, a in enumerate(args)]
