"""Groups: the processes that run a program together, as torch.distributed knows them.

Threads of gloo's take Python's lock when they let go of tensors, and abort a process that ends meanwhile. They end with
their group, which nobody here holds on to, and an exchange is over once they have let go.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from tilewright import settings
from tilewright.errors import ExecutionError
from tilewright.forks import computed_once
from tilewright.programs.distributed.config import TIMEOUT
from tilewright.programs.distributed.link import Link

SLOT = 2048
"""Bytes that each process brings to an exchange at once, its length among them: what is longer takes a second one."""
_LENGTH = 8
PATIENCE, ENDING, LOOK = 1.0, 20.0, 0.01
"""Seconds that torch's threads have to let go of what they worked on, and a process that has left its group to end; and
between two looks."""


class Group:
    """The processes of a process group, one for each rank; those of a group of the script's wait no longer than it."""

    def __init__(self, handle: Any) -> None:
        self._handle = ref(handle)
        self.patience = inf if handle in _OWN else _patience(handle)
        """Seconds that one of them may wait for the others at the most."""
        self.rank: int = _torch().get_rank(handle)
        self.size: int = _torch().get_world_size(handle)
        self._link: Link | None = None
        self._known: list[tuple[object, bool, int]] = []
        """Where the process of each rank runs, once all have said so."""
        self.is_told = False
        """Whether the others know that what they have begun together has failed."""

    def exchanged(self, value: object) -> list[Any]:
        """Return what every process has brought, in the order of ranks; all of them have to come.

        The first time they say where they run, too. ExecutionError where one of them brings that it has failed, which
        ends what all of them have begun.
        """
        brought = self._brought((True, value, None if self._known else (_machine(), _may_share(), os.getpid())))
        for rank, (is_fine, told, _) in enumerate(brought):
            if not is_fine:
                self.is_told = True
                raise ExecutionError(f"rank {rank} failed: {told}")
        self._known = self._known or [place for *_, place in brought]
        return [told for _, told, _ in brought]

    def tell_failure(self, text: str) -> None:
        """Let the exchange that the others are in, or come to, fail on all of them; once, and not what they know."""
        if not self.is_told:
            self.is_told = True
            with suppress(ExecutionError):  # of others that have ended, too: the caller raises what happened here
                self._brought((False, text, None))

    def _brought(self, value: object) -> list[Any]:
        data = pickle.dumps(value)
        brought = self._gathered(len(data).to_bytes(_LENGTH, "little") + data[: SLOT - _LENGTH], SLOT)
        lengths = [int.from_bytes(each[:_LENGTH], "little") for each in brought]
        if max(lengths) > SLOT - _LENGTH:
            brought = [b"\0" * _LENGTH + each for each in self._gathered(data, max(lengths))]
        return [pickle.loads(each[_LENGTH:]) for each in brought]

    def _gathered(self, data: bytes, size: int) -> list[bytes]:
        """Return what every process has brought, filled up to so many bytes."""
        import torch

        own = torch.frombuffer(bytearray(data.ljust(size, b"\0")), dtype=torch.uint8)
        rows: list[Any] = [*torch.empty(self.size, size, dtype=torch.uint8, device="cpu").unbind()]
        since = time.monotonic()
        try:
            _torch().all_gather(rows, own, group=self.handle)
        except RuntimeError as error:
            self.is_told = True
            raise self._broken(error, time.monotonic() - since) from error
        finally:
            _wait_for_release([own, *rows])
        return [row.numpy().tobytes() for row in rows]

    def _broken(self, error: RuntimeError, waited: float) -> ExecutionError:
        """Return what happened where processes could not tell each other something: who has ended, if anybody."""
        can_look, is_late = bool(self._known) and self.beside == self.size, "imed out" in str(error)
        until = time.monotonic() + (0 if is_late else ENDING)
        while can_look and not self.ended() and time.monotonic() < until:
            time.sleep(LOOK)
        for rank in self.ended() if can_look else ():
            return ExecutionError(f"the process of rank {rank} has ended while rank {self.rank} made ready to run")
        message = f"a process of the group has ended while rank {self.rank} made ready to run"
        if is_late:
            message = f"rank {self.rank} has waited {waited:.0f} s for all others to make ready to run"
        return ExecutionError(message, notes=[str(error).partition("\n")[0]])

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
            self.exchanged(None)
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
        if any(self.exchanged(self._link is None or self._link.is_broken)):
            self._link = Link(self.handle, self.rank, self.size)
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


def _machine() -> object:
    """Return what tells this machine, or a part of one whose processes see no others, from the rest."""
    told = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    boot = told[0].read_text().strip() if told[0].exists() else ""
    return boot, socket.gethostname(), told[1].readlink().name if told[1].is_symlink() else ""


def _may_share() -> bool:
    """Return whether this process may share memory with others: where Linux does, unless the settings say no."""
    return hasattr(os, "memfd_create") and settings.transport() == "memory"


def _wait_for_release(tensors: Sequence[Any]) -> None:
    """Wait until nobody but the caller holds tensors: torch's threads do so a while longer than they work on them."""
    until = time.monotonic() + PATIENCE
    while any(each._use_count() > 1 for each in tensors) and time.monotonic() < until:
        time.sleep(0)


def _join(timeout: float) -> None:
    """Make a group of all processes that were launched together."""
    try:
        _torch().init_process_group("gloo", timeout=timedelta(seconds=timeout))
    except RuntimeError as error:
        message = f"not all {launched_size()} processes have come within {timeout:g} s"
        told = str(error).partition("\n")[0]
        raise ExecutionError(message, notes=[told], help="every process calls the host function") from error
    _OWN.add(_torch().group.WORLD)
    atexit.register(_leave)


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
_OWN: WeakSet[Any] = WeakSet()
"""The groups that were made here."""
