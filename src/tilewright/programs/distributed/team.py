"""Teams: a thread for each rank of a process, which runs what it is handed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

from tilewright.call.thread_limit import thread_count
from tilewright.core.world import UNHEARD
from tilewright.errors import ExecutionError
from tilewright.forks import Lock, after_fork
from tilewright.interpret.hosts import Plan
from tilewright.programs.distributed.in_place import InPlace
from tilewright.programs.distributed.mapped import Pieces, made_file
from tilewright.programs.distributed.progress import Ended, ThreadProgress
from tilewright.programs.distributed.steps import Bodies, Natives, Steps, steps_of
from tilewright.programs.distributed.waits import Patience, Waits
from tilewright.programs.distributed.windows import own_parts

STUCK = "all ranks that are left wait, and nobody can end that"
LOOK = 0.05
"""Seconds between two looks of the caller, in which signals are handled."""

GRACE = 10
"""Looks after which what still runs is stopped: those who wait have said by then what they wait for."""


class TeamRun:
    """What all ranks of this process do, again and again."""

    def __init__(self, steps: Steps, waits: Waits) -> None:
        self.steps = steps
        self.waits = waits
        self.progress = ThreadProgress(len(steps.ranks))
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.left = 0
        self.over: set[int] = set()
        """The ranks that have had all their turns."""
        self.errors: list[tuple[int, BaseException]] = []

    def begin(self, bases: Sequence[int]) -> None:
        """Make ready for a run on arguments that start at some addresses."""
        self.left, self.errors, self.over = len(self.steps.ranks), [], set()
        self.waits.begin()
        self.done.clear()
        self.progress.begin()
        self.steps.begin(bases)

    def of(self, rank: int) -> None:
        """Do what one rank has to; a mistake ends the others."""
        try:
            self.steps.run(rank, self.progress)
            self.over.add(rank)
        except Ended:
            pass
        except BaseException as error:
            self.end(rank, error)
        with self.lock:
            self.left -= 1
            if not self.left:
                self.done.set()

    def end(self, rank: int, error: BaseException) -> None:
        """Let ranks that wait go on to their end, in vain."""
        with self.lock:
            self.errors.append((rank, error))
        self.waits.end()
        self.progress.end()

    def wait(self, timeout: float) -> None:
        """Wait for all ranks; those that wait too long are ended, and so are all where a signal's handler raises."""
        patience, looks = Patience(), 0
        try:
            while not self.done.wait(min(LOOK, timeout)):
                looks += self.waits.is_over
                if looks > GRACE:
                    self.steps.stop()
                late = patience.longest(self.waits.each() | self.progress.each()) > timeout
                if not self.waits.is_over and (late or self.is_stuck()):
                    why = f"ranks have waited for each other for more than {timeout:g} s" if late else STUCK
                    ended = [f"rank {rank} has ended" for rank in sorted(self.over)]
                    self.end(-1, ExecutionError(why, notes=ended, help=UNHEARD))
        except BaseException as interrupt:
            self.end(-1, interrupt)
            self.steps.stop()
            self.done.wait(timeout)
            raise

    def is_stuck(self) -> bool:
        """Return whether all ranks that are not done have waited since the last look but one."""
        with self.lock:
            return self.waits.are_in_vain(self.left - self.progress.blocked(), tuple(self.progress.turns))


def team_run(plan: Plan, natives: Natives, bodies: Bodies, args: Sequence[Any], chosen: InPlace) -> TeamRun:
    """Return a plan made ready for the ranks of this process."""
    waits, pieces = Waits(plan.size), Pieces(plan, chosen)
    parts = {buffer: own_parts(buffer, waits.aborts) for buffer in plan.buffers if buffer not in pieces.of}
    if pieces.of:
        starts = [sum(pieces.rooms[:rank]) for rank in range(plan.size)]
        with made_file(sum(pieces.rooms)) as file:
            parts |= pieces.parts(waits.aborts, lambda rank: (file, starts[rank]))
    threads = max(1, thread_count() // plan.size)
    return TeamRun(steps_of(plan, natives, bodies, args, parts, range(plan.size), threads), waits)


class Team:
    """Threads that wait for runs; a daemon each, so that none outlives the process."""

    def __init__(self) -> None:
        self.queues: list[SimpleQueue[Callable[[], None]]] = []
        self.lock = Lock()

    def run(self, run: TeamRun, bases: Sequence[int], timeout: float) -> None:
        """Run all ranks to their end, on tensors that start at some addresses.

        Raise what the first of them did wrong, or that they take too long.
        """
        check_caller()
        with self.lock:
            run.begin(bases)
            for rank, queue in enumerate(self.grown(len(run.steps.ranks))):
                queue.put(partial(run.of, rank))
            run.wait(timeout)
        if run.errors:
            raise named(run.errors)

    def grown(self, count: int) -> list[SimpleQueue[Callable[[], None]]]:
        """Return what so many threads are handed their work in."""
        while len(self.queues) < count:
            queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
            name = f"tilewright-rank-{len(self.queues)}"
            threading.Thread(target=_serve, args=(queue,), daemon=True, name=name).start()
            self.queues.append(queue)
        return self.queues[:count]


def _serve(queue: SimpleQueue[Callable[[], None]]) -> None:
    _SERVING.is_rank = True
    while True:
        queue.get()()


def check_caller() -> None:
    """Raise for a call of a host function that comes from a rank: the run that it is part of would wait for it."""
    if getattr(_SERVING, "is_rank", False):
        message = "a function that a rank runs has called a host function"
        raise ExecutionError(message, help="call it once the host function that runs now has returned")


def named(errors: Sequence[tuple[int, BaseException]]) -> BaseException:
    """Return what went wrong first, with the ranks that it ended."""
    rank, first = errors[0]
    if isinstance(first, ExecutionError):
        told = [] if rank < 0 else [f"on rank {rank}"]
        told += [f"rank {r}: {said(e)}" for r, e in sorted(errors[1:], key=lambda pair: pair[0])]
        if rank < 0 and len(errors) > 1:  # shown where the first of them waits
            told_by = min(errors[1:], key=lambda pair: pair[0])[1]
            first.locate(told_by.spans if isinstance(told_by, ExecutionError) else ())
        first.notes = (*first.notes, *told)
    return first


def said(error: BaseException) -> str:
    """Return what went wrong, and where."""
    if isinstance(error, ExecutionError):
        where = f" at {error.spans[0]}" if error.spans else ""
        return f"{error.message}{where}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


TEAM = Team()
_SERVING = threading.local()
"""Whether a thread is one of the team's."""

after_fork(lambda: TEAM.queues.clear())
