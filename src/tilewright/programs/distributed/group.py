"""Groups: the processes that run a program together, as torch.distributed knows them.

Threads of gloo's take Python's lock when they let go of tensors, and abort a process that ends meanwhile. They end with
their group, which nobody here holds on to.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import socket
import sys
import time
from contextlib import suppress
from datetime import timedelta
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet, ref

from tilewright import settings
from tilewright.errors import ExecutionError
from tilewright.forks import computed_once
from tilewright.programs.distributed.config import TIMEOUT
from tilewright.programs.distributed.link import Link
from tilewright.programs.distributed.meetings import Absent, Failed, Meetings

ENDING, LOOK = 20.0, 0.01
"""Seconds that a process that has left its group has to end, and between two looks."""
SOON = 5.0
"""Seconds that a process which has failed waits for one to tell it."""
LEAVING = 2.0
"""And one that has left a group for rank 0 to leave it, too."""
_LAUNCHER = "TORCHELASTIC_USE_AGENT_STORE"
"""Whether whoever launched the processes holds their store."""
EVERYBODY = "every process calls the host function, with the same tensors and numbers"


class Leaves(Protocol):
    """What processes made ready to run together, which one of them may leave."""

    def leave(self, is_elsewhere: bool) -> None:
        """Tell the others that this process does other things, or no longer does."""
        ...


class Group:
    """The processes of a process group, one for each rank; those of a group of the script's wait no longer than it."""

    def __init__(self, handle: Any) -> None:
        self._handle = ref(handle, lambda _: self._leave())
        self.patience = inf if handle in _OWN else _patience(handle)
        """Seconds that one of them may wait for the others at the most."""
        self.rank: int = _torch().get_rank(handle)
        self.size: int = _torch().get_world_size(handle)
        self._link: Link | None = None
        self._known: list[tuple[object, bool, int]] = []
        """Where the process of each rank runs, once all have said so."""
        self.is_told = False
        """Whether the others know that what they have begun together has failed."""
        self.limit = self.patience
        """Seconds that one of them may wait for the others now."""
        self.runs: WeakSet[Leaves] = WeakSet()
        """What is made ready here for all of them to run."""
        self.failures = 0
        """How often a call has failed here before it came to them: what was made ready before is over."""
        self.links = 0
        """How many links there were."""
        self._meetings = Meetings(self._store, self.rank, self.size)
        self._held_by = _holder(self._store())

    def _leave(self) -> None:
        """Let go of what belongs to a group that was left, once what rank 0 holds of it is gone.

        The script may make another one at once: whoever found the old store then would wait for rank 0 in vain.
        """
        if self._link is not None:
            self._link.close()
        if self._held_by is not None:
            with suppress(OSError):
                self._held_by.recv(1)
            self._held_by.close()

    def _store(self) -> Any:
        """Return what torch keeps for the processes."""
        return _torch().distributed_c10d._world.pg_map[self.handle][1]

    def exchanged(self, value: object, about: str) -> list[Any]:
        """Return what every process has brought, in the order of ranks; all of them have to come, for the same thing.

        They say where they run, too. ExecutionError where one of them has failed or does not come in
        time, which ends what all of them have begun.
        """
        own = about, value, (_machine(), _may_share(), os.getpid())
        brought = [pickle.loads(each) for each in self._met(pickle.dumps(own))]
        if {*(each for each, *_ in brought)} != {about}:
            told = ", ".join(f"rank {rank} at {each}" for rank, (each, *_) in enumerate(brought))
            self.is_told = True
            raise ExecutionError(f"ranks make ready for different things: {told}", help=EVERYBODY)
        self._known = self._known or [place for *_, place in brought]
        return [told for _, told, _ in brought]

    def tell_failure(self, text: str) -> None:
        """Let the exchange that the others are in, or come to, fail on all of them; once, and not what they know."""
        if not self.is_told:
            self.is_told = True
            with suppress(RuntimeError):  # of others that have ended, too: the caller raises what happened here
                self._meetings.fail(text)

    def give_up(self, text: str) -> None:
        """Let all runs of this process be over, and the exchange fail that others come to in their place."""
        self.failures += 1
        self.leave(True)
        self.runs.clear()
        self.is_told = False
        self.tell_failure(text)

    def leave(self, is_elsewhere: bool) -> None:
        """Tell the others that this process is in none of its runs, or may come to them again."""
        for run in [*self.runs]:
            run.leave(is_elsewhere)

    def _met(self, data: bytes) -> list[bytes]:
        since = time.monotonic()
        try:
            return self._meetings.exchanged(data, self.limit, self._look)
        except Failed as error:
            self.is_told = True
            raise ExecutionError(f"rank {error.rank} failed: {error.text}") from None
        except Absent as error:
            raise absence(error, self.rank, min(self.limit, time.monotonic() - since)) from None
        except RuntimeError as error:
            self.is_told = True
            raise self._broken(error) from error

    def _look(self) -> None:
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
    def _places(self) -> list[tuple[object, bool, int]]:
        """The machine of each rank, whether it may share memory there, and its process."""
        if not self._known:
            self.exchanged(None, "places")
        return self._known

    @property
    def processes(self) -> list[int]:
        """The process of each rank."""
        return [process for *_, process in self._places]

    @property
    def shares_memory(self) -> bool:
        """Whether all processes run on one machine, and may share its memory."""
        return self.beside == self.size and all(may_share for _, may_share, _ in self._places)

    @property
    def beside(self) -> int:
        """How many of the processes run on this one's machine."""
        return sum(machine == self._places[self.rank][0] for machine, *_ in self._places)

    def link(self) -> Link:
        """Return what messages go over; a new one where a message was given up, which all find out together."""
        if any(self.exchanged(self._link is None or self._link.is_broken, "messages")):
            self.links += 1
            self._link = Link(self._store, f"{self._meetings.name}/link {self.links}", self.rank, self.size)
        assert self._link is not None
        return self._link

    @computed_once
    def _watched(self) -> dict[int, int]:
        """A descriptor for each other process that can be read once it has ended, with its rank."""
        others = {rank: process for rank, process in enumerate(self.processes) if rank != self.rank}
        return {_watching(process): rank for rank, process in others.items()}

    def ended(self) -> list[int]:
        """Return the ranks whose processes have ended."""
        watch = select.poll()
        for descriptor in self._watched:
            watch.register(descriptor, select.POLLIN)
        return [self._watched[descriptor] for descriptor, _ in watch.poll(0)]


def _holder(store: Any) -> socket.socket | None:
    """Return what ends with the store of a group, where another process of the group holds it and may take it along."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    is_launcher = os.environ.get(_LAUNCHER) == str(True)
    if is_launcher or not isinstance(store, _torch().TCPStore) or _torch().get_rank() == 0:
        return None
    with suppress(OSError):
        found = socket.create_connection((store.host, store.port), LEAVING)
        found.settimeout(LEAVING)
        return found
    return None


def _watching(process: int) -> int:
    """Return a descriptor that can be read once a process has ended, at once for one that is gone already."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        reading, writing = os.pipe()
        os.close(writing)
        return reading


def _torch() -> Any:
    """Return torch's processes, which only programs of several load."""
    import torch.distributed

    return torch.distributed


@cache
def _machine() -> object:
    """Return what tells this machine, or a part of one whose processes see no others, from the rest."""
    told = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    boot = told[0].read_text().strip() if told[0].exists() else ""
    return boot, socket.gethostname(), told[1].readlink().name if told[1].is_symlink() else ""


def _may_share() -> bool:
    """Return whether this process may share memory with others: where Linux does, unless the settings say no."""
    return hasattr(os, "memfd_create") and settings.transport() == "memory"


def _join(timeout: float) -> None:
    """Make a group of all processes that were launched together, once all of them have come."""
    dist, rank, size, since = _torch(), int(os.environ["RANK"]), launched_size(), time.monotonic()
    try:
        meetings = _joining(rank, size, timeout)
        meetings.exchanged(b"", timeout, lambda: None)
    except Failed as error:
        raise ExecutionError(f"rank {error.rank} failed: {error.text}") from None
    except Absent as error:
        found = absence(error, rank, min(timeout, time.monotonic() - since))
        _JOINING[0].fail(found.message)
        raise found from None
    store = dist.PrefixStore(meetings.name, _STORE.pop())
    _JOINING.clear()
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout))
    _OWN.add(dist.group.WORLD)
    atexit.register(_leave)


def _joining(rank: int, size: int, timeout: float) -> Meetings:
    """Return the meetings of all processes that were launched together; Absent where rank 0 does not come.

    The store is the one that torch would make: of whoever launched them, or else rank 0's.
    """
    if not _JOINING:
        is_held = rank == 0 and os.environ.get(_LAUNCHER) != str(True)
        place, limit = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timedelta(seconds=timeout)
        if not is_held:
            _await_store(place, timeout)
        held = _torch().TCPStore(*place, None, is_held, limit, wait_for_workers=False, multi_tenant=True)
        _STORE[:] = [held]
        _JOINING[:] = [Meetings(lambda: held, rank, size)]
    while _UNTOLD:
        _JOINING[0].fail(_UNTOLD.pop(0))
    return _JOINING[0]


def _await_store(place: tuple[str, int], timeout: float) -> None:
    """Wait until somebody listens where the store is to be; Absent where nobody does, of which torch would say more."""
    until = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection(place, LEAVING).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise Absent([0]) from error
        time.sleep(LOOK)


def tell_joining(text: str) -> None:
    """Let others that wait for a first call know that it has failed here, and those who come later."""
    _UNTOLD.append(text)
    with suppress(RuntimeError, Absent):
        _joining(int(os.environ["RANK"]), launched_size(), SOON)


def absence(absent: Absent, rank: int, waited: float) -> ExecutionError:
    """Return that processes have not come for which one has waited."""
    names = ", ".join(map(str, absent.ranks))
    who, them = (f"rank {names} has", "it") if len(absent.ranks) == 1 else (f"ranks {names} have", "them")
    seconds = f"{waited:.0f}" if waited > 1 else f"{waited:.2g}"
    return ExecutionError(f"{who} not come: rank {rank} has waited {seconds} s for {them}", help=EVERYBODY)


def _patience(handle: Any) -> float:
    """Return the seconds after which torch gives up what a process group does."""
    options = getattr(handle._get_backend(sys.modules["torch"].device("cpu")), "options", None)
    return inf if options is None else options._timeout.total_seconds()


def _leave() -> None:
    """Leave all groups, unless the script has."""
    if _torch().is_initialized():
        _torch().destroy_process_group()


def launched_size() -> int:
    """Return how many processes a launcher or an initialized process group says that there are; 1 for this one."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    told = os.environ.get("WORLD_SIZE", "1")
    return int(told) if told.isdigit() and "RANK" in os.environ and "MASTER_ADDR" in os.environ else 1


def group_size(handle: Any) -> int:
    """Return how many processes a process group has, or without one those that were launched together."""
    if handle is None:
        return launched_size()
    dist = _torch()
    if handle == dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process is no member of the process_group, whose members alone call the program")
    if not isinstance(handle, dist.ProcessGroup):
        raise TypeError(f"process_group is a group of torch.distributed, got {handle!r}")
    return int(dist.get_world_size(handle))


def group_of(handle: Any = None, timeout: float = TIMEOUT) -> Group:
    """Return the processes of a process group, or those that were launched together.

    Where nobody has made a group of those, it is made, and left when the process ends; ExecutionError unless all come
    within so many seconds. What processes tell each other goes over gloo.
    """
    dist = _torch()
    if handle is None and not dist.is_initialized():
        _join(timeout)
    handle = dist.group.WORLD if handle is None else handle
    if handle not in _GROUPS:
        _GROUPS[handle] = Group(_over_gloo(handle))
    return _GROUPS[handle]


def _over_gloo(handle: Any) -> Any:
    """Return a process group, or one of the same processes that talk over gloo."""
    dist = _torch()
    if str(dist.get_backend(handle)) == "gloo":
        return handle
    return dist.new_group(dist.get_process_group_ranks(handle), backend="gloo")


_GROUPS: WeakKeyDictionary[Any, Group] = WeakKeyDictionary()
_JOINING: list[Meetings] = []
_STORE: list[Any] = []
"""Where processes that were launched together meet until they are a group: kept while some have not come."""
_UNTOLD: list[str] = []
"""Why first calls have failed here, of which others do not know: rank 0 has not come."""
_OWN: WeakSet[Any] = WeakSet()
"""The groups that were made here."""
