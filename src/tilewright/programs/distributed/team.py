"""Teams: a thread for each rank of a process, which runs what it is handed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import BrokenBarrierError
from time import monotonic

from tilewright.errors import ExecutionError
from tilewright.forks import Lock, after_fork
from tilewright.programs.distributed.steps import Step, Steps

LOOK = 0.05
"""Seconds between two looks of the caller, in which signals are handled."""


class _Run:
    """One run of all ranks."""

    def __init__(self, steps: Steps, count: int) -> None:
        self.steps = steps
        self.left = count
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.errors: list[tuple[int, BaseException]] = []

    def of(self, rank: int, steps: Sequence[Step]) -> None:
        """Do what one rank has to; a mistake ends the others."""
        try:
            for step in steps:
                step()
        except BaseException as error:
            with self.lock:
                self.errors.append((rank, error))
            self.steps.end()
        with self.lock:
            self.left -= 1
            if not self.left:
                self.done.set()


class Team:
    """Threads that wait for runs; a daemon each, so that none outlives the process."""

    def __init__(self) -> None:
        self.queues: list[SimpleQueue[Callable[[], None]]] = []
        self.lock = Lock()

    def run(self, steps: Steps, bases: Sequence[int], timeout: float) -> None:
        """Run all ranks to their end, on tensors that start at some addresses.

        Raise what the first of them did wrong, or that they take too long.
        """
        with self.lock:
            steps.begin(bases)
            run = _Run(steps, len(steps.ranks))
            for rank, queue in enumerate(self._grown(len(steps.ranks))):
                queue.put(lambda rank=rank: run.of(rank, steps.ranks[rank]))
            self._wait(run, timeout)
        if run.errors:
            raise _named(run.errors)

    def _grown(self, count: int) -> list[SimpleQueue[Callable[[], None]]]:
        while len(self.queues) < count:
            queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
            name = f"tilewright-rank-{len(self.queues)}"
            threading.Thread(target=_serve, args=(queue,), daemon=True, name=name).start()
            self.queues.append(queue)
        return self.queues[:count]

    def _wait(self, run: _Run, timeout: float) -> None:
        since = monotonic()
        try:
            while not run.done.wait(min(LOOK, timeout)):
                if monotonic() - since > timeout and not run.steps.abort.value:
                    late = ExecutionError(f"ranks have waited for each other for more than {timeout:g} s")
                    run.errors.append((-1, late))
                    run.steps.end()
        except BaseException:
            run.steps.end()
            run.done.wait(timeout)
            raise


def _serve(queue: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        queue.get()()


def _named(errors: Sequence[tuple[int, BaseException]]) -> BaseException:
    """Return what went wrong first, with the ranks that it ended."""
    rank, first = errors[0]
    if isinstance(first, ExecutionError):
        others = [(r, e) for r, e in errors[1:] if not isinstance(e, BrokenBarrierError)]
        told = [] if rank < 0 else [f"on rank {rank}"]
        told += [f"rank {r}: {_said(e)}" for r, e in sorted(others, key=lambda pair: pair[0])]
        first.notes = (*first.notes, *told)
    return first


def _said(error: BaseException) -> str:
    if isinstance(error, ExecutionError):
        where = f" at {error.spans[0]}" if error.spans else ""
        return f"{error.message}{where}"
    return f"{type(error).__name__}: {error}"


TEAM = Team()


after_fork(lambda: TEAM.queues.clear())
