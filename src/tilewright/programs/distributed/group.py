"""Groups: the processes that run a program together, as torch.distributed knows them."""

from __future__ import annotations

import os
import select
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.forks import computed_once


class Group:
    """The processes of a process group, one for each rank, all on one machine."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.rank: int = _torch().get_rank(handle)
        self.size: int = _torch().get_world_size(handle)

    def exchanged(self, value: object) -> list[Any]:
        """Return what every process has brought, in the order of ranks; all of them have to come."""
        found: list[Any] = [None] * self.size
        _torch().all_gather_object(found, value, group=self.handle)
        return found

    @computed_once
    def processes(self) -> list[int]:
        """The process of each rank; ValueError where some run on another machine, whose memory cannot be shared."""
        found = self.exchanged((_machine(), os.getpid()))
        elsewhere = [rank for rank, (machine, _) in enumerate(found) if machine != found[0][0]]
        if elsewhere:
            raise ValueError(
                f"ranks {elsewhere} run on another machine than rank 0: windows need memory that they share"
            )
        return [process for _, process in found]

    @computed_once
    def _watched(self) -> dict[int, int]:
        """A descriptor for each other process that can be read once it has ended, with its rank."""
        others = {rank: process for rank, process in enumerate(self.processes) if rank != self.rank}
        return {os.pidfd_open(process): rank for rank, process in others.items()}

    def ended(self) -> list[int]:
        """Return the ranks whose processes have ended."""
        watch = select.poll()
        for descriptor in self._watched:
            watch.register(descriptor, select.POLLIN)
        return [self._watched[descriptor] for descriptor, _ in watch.poll(0)]


def _torch() -> Any:
    """Return torch's processes, which only programs of several load."""
    import torch.distributed

    return torch.distributed


def _machine() -> str:
    """Return what tells this machine from others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def launched_size() -> int:
    """Return how many processes a launcher or an initialized process group says that there are; 1 for this one."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    told = os.environ.get("WORLD_SIZE", "1")
    return int(told) if told.isdigit() and "RANK" in os.environ and "MASTER_ADDR" in os.environ else 1


def group_size(handle: Any) -> int:
    """Return how many processes a process group has, or without one those that were launched together."""
    return launched_size() if handle is None else int(_torch().get_world_size(handle))


@cache
def group_of(handle: Any = None) -> Group:
    """Return the processes of a process group, or those that were launched together.

    Where nobody has made a group of those, it is made. What processes tell each other goes over gloo.
    """
    dist = _torch()
    if handle is None and not dist.is_initialized():
        dist.init_process_group("gloo")
    if str(dist.get_backend(handle)) == "gloo":
        return Group(dist.group.WORLD if handle is None else handle)
    return Group(dist.new_group(dist.get_process_group_ranks(handle or dist.group.WORLD), backend="gloo"))
