"""Runs over processes: each does the turns of its rank, on windows in memory that all of them share.

The host function runs in every process and plans the same. Tensors that any rank writes lie in the memory of rank 0
while a run lasts, and every process has all of them in the end. Ranks meet by words that each writes for itself. A
process that fails says why and ends the waits of all others; one that ends or does not answer is named by them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array, Region, whole
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Plan, WindowBuffer
from tilewright.native import futexes
from tilewright.native.domains import NAPS, SLEEPS
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.in_place import PAGE, InPlace
from tilewright.programs.distributed.mapped import Pieces
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control, Segment
from tilewright.programs.distributed.steps import Bodies, Natives, Steps, steps_of
from tilewright.programs.distributed.team import LOOK, STUCK, TEAM, said
from tilewright.programs.distributed.waits import Looks
from tilewright.programs.distributed.windows import Parts, aligned, room_of

PATIENCE = 2.0
"""Seconds that a process whose run is over has to say so."""
SPINS = 50
"""How often a process looks before it sleeps."""
FAILED, LATE, ALONE, VAIN = 1, 2, 3, 4
"""How a run came to be over."""


class CalledOtherwise(Exception):
    """Another process was called with other arguments, and plans for them while this one waits for it."""


class ProcessProgress:
    """The turns and meetings of ranks that are processes."""

    def __init__(self, rank: int, segments: Sequence[Segment]) -> None:
        self.rank = rank
        self.words = [segment.words for segment in segments]
        self._starts = [segment.words.ctypes.data for segment in segments]

    def advance(self, rank: int, turns: int, wakes: bool) -> None:
        """Take note that this process has had so many more turns."""
        self.words[rank][Control.TURNS] += turns
        if wakes:
            futexes.wake(self._starts[rank] + 8 * Control.TURNS)

    def until(self, rank: int, number: int) -> None:
        """Wait until a rank has had so many turns; Ended where the run is over."""
        self._until(rank, Control.TURNS, number)

    def meet(self) -> None:
        """Wait until all processes have come as far; Ended where the run is over."""
        number = int(self.words[self.rank][Control.EPOCH]) + 1
        self.words[self.rank][Control.EPOCH] = number
        futexes.wake(self._starts[self.rank] + 8 * Control.EPOCH)
        for rank in range(len(self.words)):
            self._until(rank, Control.EPOCH, number)

    def _until(self, rank: int, word: Control, number: int) -> None:
        words, own, spins = self.words[rank], self.words[self.rank], 0
        while (held := int(words[word])) < number:
            if own[Control.ABORT]:
                raise Ended(f"it waits for rank {rank}")
            spins += 1
            if spins == SPINS:
                own[Control.WORD], own[Control.NUMBER], own[Control.AWAITED] = word, number, rank + 1
            if spins > SPINS:
                futexes.wait(self._starts[rank] + 8 * word, held)
        if spins >= SPINS:
            own[Control.AWAITED] = 0

    def blocked(self) -> int:
        """Return how many processes wait for turns that have not been, or for others to come."""
        words: list[list[int]] = [each[: Control.NUMBER + 1].tolist() for each in self.words]
        awaited = [each for each in words if each[Control.AWAITED]]
        return sum(words[each[Control.AWAITED] - 1][each[Control.WORD]] < each[Control.NUMBER] for each in awaited)


class ProcessRun:
    """What this process does of a plan, again and again."""

    def __init__(
        self, group: Group, plan: Plan, natives: Natives, bodies: Bodies, args: Sequence[Any], written: Sequence[int],
        chosen: InPlace,
    ) -> None:  # fmt: skip
        self.group = group
        self.written = written
        self.sizes = {position: args[position].data.nbytes for position in written}
        pieces = Pieces(plan, chosen)
        room = self._room(plan, pieces)
        self.segments = self._shared(room + pieces.rooms[group.rank])
        self.progress = ProcessProgress(group.rank, self.segments)
        self.number = 0
        parts = self._parts(plan, pieces)
        self._close()
        self.steps: Steps = steps_of(plan, natives, bodies, args, parts, [group.rank])
        self.turns = [len(turns) for turns in plan.turns]
        self.may_look = True
        """Whether a rank that sleeps does nothing else: it has one thread, or no turns side by side."""
        self.looks = Looks()
        self.failure: BaseException | None = None
        self.done = threading.Event()

    def _room(self, plan: Plan, pieces: Pieces) -> int:
        """Return the bytes in front of the pieces: parts of windows, and with rank 0 the tensors that are written."""
        held = [buffer for buffer in plan.buffers if self.group.rank in buffer.ranks and buffer not in pieces.of]
        staged = 2 * sum(map(aligned, self.sizes.values())) if self.group.rank == 0 else 0
        return -(-(sum(map(room_of, held)) + staged) // PAGE) * PAGE

    def _shared(self, size: int) -> list[Segment]:
        """Return the segments of all processes."""
        own = Segment.made(size)
        told = self.group.exchanged((own.descriptor, own.size))
        processes = self.group.processes
        return [
            own if peer == self.group.rank else Segment.opened(processes[peer], descriptor, size)
            for peer, (descriptor, size) in enumerate(told)
        ]

    def _close(self) -> None:
        """Give up all descriptors, once all processes have opened and mapped what they need."""
        self.group.exchanged(None)
        for segment in self.segments:
            segment.close()

    def _parts(self, plan: Plan, pieces: Pieces) -> Mapping[WindowBuffer, Parts]:
        aborts = {self.group.rank: self.segments[self.group.rank].abort}
        starts = [segment.size - room for segment, room in zip(self.segments, pieces.rooms, strict=True)]
        found = pieces.parts(aborts, lambda rank: (self.segments[rank].descriptor, starts[rank]))
        places = [0] * self.group.size
        for buffer in (each for each in plan.buffers if each not in pieces.of):
            memory: dict[int, Array] = {}
            for rank in buffer.domain:
                memory[rank] = self.segments[rank].part(places[rank], room_of(buffer))
                places[rank] += room_of(buffer)
            found[buffer] = Parts(memory, aborts)
        self._staged_at = places[0]
        return found

    def staged(self, args: Sequence[Any]) -> dict[int, Array]:
        """Return where the tensors that are written lie in this run: in two places, by turns."""
        half = sum(map(aligned, self.sizes.values()))
        at, found = self._staged_at + half * (self.number % 2), dict[int, Array]()
        for position, size in self.sizes.items():
            data: Any = args[position].data
            found[position] = self.segments[0].part(at, size).view(data.dtype).reshape(data.shape)  # pyright: ignore[reportUnknownMemberType]
            at += aligned(size)
        return found

    def run(self, args: Sequence[Any], timeout: float, starts: Mapping[int, int]) -> None:
        """Do what this process has to, and leave in `args` what all ranks wrote; raise what ended the run.

        `starts` says of arguments that only stand for others where those begin, by their positions.
        """
        self.number += 1
        shared = self.staged(args)
        self.segments[self.group.rank].begin()
        self.looks = Looks()
        if self.group.rank == 0:
            for position, array in shared.items():
                array[...] = args[position].data
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
            raise self.failure
        for position, array in shared.items():
            args[position].data[...] = array

    def _work(self) -> None:
        try:
            self.progress.meet()
            self.steps.run(self.group.rank, self.progress)
            self.progress.meet()
        except BaseException as error:
            self.failure = error
        self.done.set()

    def _watch(self, timeout: float) -> None:
        """Wait for this process's part; end all where another process has ended, or they take too long."""
        since = time.monotonic()
        own = self.segments[self.group.rank].words
        try:
            while not self.done.wait(LOOK):
                late = time.monotonic() - since > timeout
                if not own[Control.ABORT] and (late or self._is_alone() or self.group.ended()):
                    self._end(LATE if late else ALONE if self._is_alone() else FAILED)
                elif not own[Control.ABORT] and self._is_stuck():
                    self._end(VAIN)
        except BaseException:
            self._end()
            self.done.wait(PATIENCE)
            raise
        if self.failure is not None and own[Control.ABORT] == ALONE:
            raise CalledOtherwise
        if self.failure is not None:
            late = f"ranks have waited for each other for more than {timeout:g} s"
            self.failure = self._explained(self.failure, {LATE: late, VAIN: STUCK}.get(int(own[Control.ABORT]), ""))

    def _is_stuck(self) -> bool:
        """Return whether all ranks that are not done have waited since the last look but one."""
        words = self.progress.words
        sleeps, naps, turns = ([int(each[k]) for each in words] for k in (SLEEPS, NAPS, Control.TURNS))
        left = len(words) - self.progress.blocked()
        return self.may_look and self.looks.are_in_vain(sleeps, naps, left, tuple(turns))

    def plan_anew(self, planning: bool) -> None:
        """Tell the others that this process plans for other arguments, or has done so."""
        self.segments[self.group.rank].words[Control.PLANNING] = planning

    def _is_alone(self) -> bool:
        """Return whether another process, for which this one waits, was called with other arguments."""
        number = self.segments[self.group.rank].words[Control.EPOCH]
        words = (segment.words for segment in self.segments)
        return any(each[Control.PLANNING] and each[Control.EPOCH] < number for each in words)

    def _end(self, how: int = FAILED) -> None:
        for segment in self.segments:
            segment.words[Control.ABORT] = segment.words[Control.ABORT] or how

    def _explained(self, error: BaseException, why: str) -> BaseException:
        """Return why a run is over: this rank's own mistake, that of another one, or who does not answer."""
        rank, own = self.group.rank, self.segments[self.group.rank]
        is_own = not isinstance(error, Ended) and not own.words[Control.ABORT]
        own.words[Control.FAILED] = self.number if is_own else 0
        own.say(self.number, str(error) if isinstance(error, Ended) else said(error))
        self._end()
        if is_own:
            _note(error, f"on rank {rank}")
            return error
        silent = self._silent()
        told = {peer: each for peer, each in enumerate(self.segments) if peer not in silent}
        failed = [peer for peer, each in told.items() if each.words[Control.FAILED] == self.number]
        if failed:
            return ExecutionError(f"rank {failed[0]} failed: {told[failed[0]].said()}")
        ended = self.group.ended()
        if ended:
            return ExecutionError(f"the process of rank {ended[0]} has ended while rank {rank} was running")
        notes = [f"rank {peer}: {each.said()}" for peer, each in told.items() if peer != rank]
        notes += [f"rank {peer} does not answer: {self._place(peer)}" for peer in silent]
        if isinstance(error, ExecutionError):
            error.message = f"{why}: {error.message}" if why else error.message
            error.notes = (*error.notes, f"on rank {rank}", *notes)
            return error
        return ExecutionError(f"{why or 'the run was ended'}: {error}", notes=[f"on rank {rank}", *notes])

    def _silent(self) -> list[int]:
        """Return the ranks that do not say in time that their run is over."""
        until = time.monotonic() + PATIENCE
        while True:
            silent = [p for p, each in enumerate(self.segments) if each.words[Control.ANSWER] != self.number]
            if not silent or time.monotonic() > until or set(silent) <= {*self.group.ended()}:
                return silent
            time.sleep(0.005)

    def _place(self, rank: int) -> str:
        return f"it has had {int(self.segments[rank].words[Control.TURNS])} of {self.turns[rank]} turns"


def _note(error: BaseException, text: str) -> None:
    if isinstance(error, ExecutionError):
        error.notes = (*error.notes, text)


def shared_args(args: Sequence[Any], written: Sequence[int]) -> list[Any]:
    """Return arguments as plans of processes see them: those that are written lie packed."""
    return [whole(np.ascontiguousarray(a.data)) if k in written else a for k, a in enumerate(args)]
