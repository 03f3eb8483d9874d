"""Groups: the processes that run a program together, as torch.distributed knows them.

Threads of gloo's take Python's lock when they let go of tensors, and abort a process that ends meanwhile. They end with
their group, which nobody here holds on to.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import time
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

from tilewright import settings
from tilewright.call.thread_limit import thread_count
from tilewright.errors import ExecutionError
from tilewright.programs.distributed.config import TIMEOUT
from tilewright.programs.distributed.launched import (
    EVERYBODY,
    Launched,
    absence,
    await_end,
    holder,
    joined,
    launched_size,
    torch_processes,
)
from tilewright.programs.distributed.link import Link
from tilewright.programs.distributed.meetings import Absent, Failed, Meetings
from tilewright.programs.distributed.outlines import Outline, differing
from tilewright.programs.distributed.whereabouts import Whereabouts
from tilewright.records import record

ENDING, LOOK = 20.0, 0.01
"""Seconds that a process that has left its group has to end, and between two looks."""


@record
class _Place:
    """Where a process runs: its machine, whether it may share memory there, its number, and what it computes on."""

    machine: object
    may_share: bool
    process: int
    cores: int
    threads: int


class Leaves(Protocol):
    """What processes made ready to run together, which one of them may leave."""

    whereabouts: Whereabouts


class Group:
    """The processes of a process group, one for each rank; those of a group of the script's wait no longer than it."""

    def __init__(self, handle: Any) -> None:
        self._handle = ref(handle, lambda _: self._leave())
        self.patience = inf if isinstance(handle, Launched) else _patience(handle)
        """Seconds that one of them may wait for the others at the most."""
        self.rank, self.size = _rank_and_size(handle)
        self._link: Link | None = None
        self._watched: dict[int, int] = {}
        """A descriptor for each other process that can be read once it has ended, with its rank."""
        self._known: list[_Place] = []
        """Where the process of each rank runs, once all have said so."""
        self.is_told = False
        """Whether the others know that what they have begun together has failed."""
        self.outline: Outline | None = None
        """What they make ready to run now, once that is planned: the same in all."""
        self.limit = self.patience
        """Seconds that one of them may wait for the others now."""
        self.runs: WeakSet[Leaves] = WeakSet()
        """What is made ready here for all of them to run."""
        self.failures = 0
        """How often a call has failed here before it came to them: what was made ready before is over."""
        self.links = 0
        """How many links there were."""
        self._meetings = Meetings(self._store, self.rank, self.size)
        self._held_by = None if isinstance(handle, Launched) else holder(self._store(), torch_processes().get_rank())

    def _leave(self) -> None:
        """Let go of what belongs to a group that was left, once what rank 0 holds of it is gone.

        The script may make another one at once: whoever found the old store then would wait for rank 0 in vain.
        """
        if self._link is not None:
            self._link.close()
        for descriptor in self._watched:
            os.close(descriptor)
        self._watched = {}
        await_end(self._held_by)

    def _store(self) -> Any:
        """Return what torch keeps for the processes."""
        found = self.handle
        return (
            found.store if isinstance(found, Launched) else torch_processes().distributed_c10d._world.pg_map[found][1]
        )

    def exchanged(self, value: object, about: str) -> list[Any]:
        """Return what every process has brought, in the order of ranks; all of them have to come, for the same thing.

        They say where they run, too, and what they have planned. ExecutionError where one of them has failed, does not
        come in time or has planned something else, which ends what all of them have begun.
        """
        place = _Place(_machine(), _may_share(), os.getpid(), _cores(), thread_count())
        own = about, None if self.outline is None else self.outline.digest, value, place
        brought = [pickle.loads(each) for each in self._met(pickle.dumps(own))]
        digests = {digest for _, digest, *_ in brought}
        if self.outline is not None and len(digests) > 1 and None not in digests:
            outlines = [pickle.loads(each) for each in self._met(pickle.dumps(self.outline))]
            self.is_told = True
            raise differing(outlines)
        if {*(each for each, *_ in brought)} != {about}:
            told = ", ".join(f"rank {rank} at {each}" for rank, (each, *_) in enumerate(brought))
            self.is_told = True
            raise ExecutionError(f"ranks make ready for different things: {told}", help=EVERYBODY)
        self._known = self._known or [place for *_, place in brought]
        return [told for _, _, told, _ in brought]

    def tell_failure(self, text: str) -> None:
        """Let the exchange that the others are in, or come to, fail on all of them; once, and not what they know."""
        if not self.is_told:
            self.is_told = True
            with suppress(RuntimeError):  # of others that have ended, too: the caller raises what happened here
                self._meetings.fail(text)

    def give_up(self, text: str) -> None:
        """Let all runs of this process be over, and the exchange fail that others come to in their place."""
        self.failures += 1
        for run in [*self.runs]:
            run.whereabouts.leave_for_good()
        self.runs.clear()
        self.is_told = False
        self.tell_failure(text)

    def leave(self, is_elsewhere: bool) -> None:
        """Tell the others that this process is in none of its runs, or may come to them again."""
        for run in [*self.runs]:
            run.whereabouts.leave(is_elsewhere)

    def _met(self, data: bytes) -> list[bytes]:
        since = time.monotonic()
        try:
            return self._meetings.exchanged(data, self.limit, self._look)
        except Failed as error:
            raise self._failed(error) from None
        except Absent as error:
            raise absence(error, self.rank, min(self.limit, time.monotonic() - since)) from None
        except RuntimeError as error:
            self.is_told = True
            raise self._broken(error) from error

    def check(self) -> None:
        """Raise ExecutionError where another process does not come to the next exchange, or has ended."""
        try:
            self._meetings.check()
        except Failed as error:
            raise self._failed(error) from None
        self._look()

    def _failed(self, error: Failed) -> ExecutionError:
        self.is_told = True
        return ExecutionError(f"rank {error.rank} failed: {error.text}")

    def _look(self) -> None:
        for run in [*self.runs]:
            run.whereabouts.remind()
        if self._known and self.beside == self.size:
            for rank in self.ended():
                raise self._ending(rank)

    def _ending(self, rank: int) -> ExecutionError:
        return ExecutionError(f"the process of rank {rank} has ended while rank {self.rank} made ready to run")

    def _broken(self, error: RuntimeError) -> ExecutionError:
        """Return what happened where processes could not tell each other something: who has ended, if anybody."""
        can_look, until = bool(self._known) and self.beside == self.size, time.monotonic() + ENDING
        while can_look and not self.ended() and time.monotonic() < until:
            time.sleep(LOOK)
        for rank in self.ended() if can_look else ():
            return self._ending(rank)
        message = f"a process of the group has ended while rank {self.rank} made ready to run"
        return ExecutionError(message, notes=[str(error).partition("\n")[0]])

    @property
    def is_left(self) -> bool:
        """Whether the process group is no more."""
        return self._handle() is None

    @property
    def handle(self) -> Any:
        """The process group; RuntimeError once it was left."""
        found = self._handle()
        if found is None:
            raise RuntimeError("the process group of this program was destroyed")
        return found

    @property
    def _places(self) -> list[_Place]:
        """Where the process of each rank runs."""
        if not self._known:
            self.exchanged(None, "places")
        return self._known

    @property
    def processes(self) -> list[int]:
        """The process of each rank."""
        return [place.process for place in self._places]

    @property
    def shares_memory(self) -> bool:
        """Whether all processes run on one machine, and may share its memory."""
        return self.beside == self.size and all(place.may_share for place in self._places)

    @property
    def beside(self) -> int:
        """How many of the processes run on this one's machine."""
        return sum(place.machine == self._places[self.rank].machine for place in self._places)

    @property
    def has_idle_cores(self) -> bool:
        """Whether ranks that compute leave cores to what brings messages: other machines do not wait for those."""
        busy = max(max(1, place.threads // self.beside) for place in self._places) * self.beside
        return self.beside < self.size or busy < min(place.cores for place in self._places)

    def link(self) -> Link:
        """Return what messages go over; a new one where something was given up, which all find out together."""
        if any(self.exchanged(self._link is None or not self._link.is_usable, "messages")):
            if self._link is not None:
                self._link.close()
            self.links += 1
            self._link = Link(self._store, f"{self._meetings.name}/link {self.links}", self.rank, self.size)
        assert self._link is not None
        return self._link

    def ended(self) -> list[int]:
        """Return the ranks whose processes have ended; none once the group was left."""
        if not (self._watched or self.is_left):
            others = {rank: process for rank, process in enumerate(self.processes) if rank != self.rank}
            self._watched = {_watching(process): rank for rank, process in others.items()}
        watch = select.poll()
        for descriptor in self._watched:
            watch.register(descriptor, select.POLLIN)
        return [self._watched[descriptor] for descriptor, _ in watch.poll(0)]


def _watching(process: int) -> int:
    """Return a descriptor that can be read once a process has ended, at once for one that is gone already."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        reading, writing = os.pipe()
        os.close(writing)
        return reading


@cache
def _machine() -> object:
    """Return what tells this machine, or a part of one whose processes see no others, from the rest."""
    told = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    boot = told[0].read_text().strip() if told[0].exists() else ""
    return boot, socket.gethostname(), told[1].readlink().name if told[1].is_symlink() else ""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _may_share() -> bool:
    """Return whether this process may share memory with others: where Linux does, unless the settings say no."""
    return hasattr(os, "memfd_create") and settings.transport() == "memory"


def _patience(handle: Any) -> float:
    """Return the seconds after which torch gives up what a process group does."""
    options = [getattr(handle._get_backend(device), "options", None) for device in handle._device_types]
    return min((each._timeout.total_seconds() for each in options if each is not None), default=inf)


def group_size(handle: Any) -> int:
    """Return how many processes a process group has, or without one those that were launched together."""
    if handle is None:
        return launched_size()
    dist = torch_processes()
    if handle == dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process is no member of the process_group, whose members alone call the program")
    if not isinstance(handle, dist.ProcessGroup):
        raise TypeError(f"process_group is a group of torch.distributed, got {handle!r}")
    return int(dist.get_world_size(handle))


def group_of(handle: Any = None, timeout: float = TIMEOUT) -> Group:
    """Return the processes of a process group, or those that were launched together.

    Where the script has made no group of those, they meet at a store, and torch's default group stays the script's to
    make; ExecutionError unless all come within so many seconds. Whatever a group talks over, its store is what counts:
    groups made here for some of the script's processes would make torch number those of the script differently.
    """
    dist = torch_processes()
    if handle is None:
        handle = dist.group.WORLD if dist.is_initialized() else joined(timeout)
    if handle not in _GROUPS:
        _GROUPS[handle] = Group(handle)
    return _GROUPS[handle]


def _rank_and_size(handle: Any) -> tuple[int, int]:
    """Return the rank of this process in a process group, and how many there are."""
    if isinstance(handle, Launched):
        return handle.rank, handle.size
    return torch_processes().get_rank(handle), torch_processes().get_world_size(handle)


_GROUPS: WeakKeyDictionary[Any, Group] = WeakKeyDictionary()
