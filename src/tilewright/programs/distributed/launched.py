"""Processes that were launched together: where they meet while no process group of the script's stands for them.

Torch's default group is the script's to make, before the first call of a host function or behind it, and to leave.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from tilewright.errors import ExecutionError
from tilewright.imported import imported
from tilewright.programs.distributed.meetings import Absent, Failed, Meetings

LOOK = 0.01
"""Seconds between two looks for rank 0."""
SOON = 5.0
"""Seconds that a process which has failed waits for one to tell it."""
LEAVING = 2.0
"""And one that has left a store for rank 0 to leave it, too."""
_LAUNCHER, _ATTEMPT = "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"
"""Whether whoever launched the processes holds their store, and how often it has started them again since."""
EVERYBODY = "every process calls the host function, with the same tensors and numbers"


class Launched:
    """All processes that were launched together, and what they tell each other by: a store of their own."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store = store
        self.rank = rank
        self.size = size


def launched_size() -> int:
    """Return how many processes a launcher or an initialized process group says that there are; 1 for this one."""
    dist = imported("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    told = os.environ.get("WORLD_SIZE", "1")
    return int(told) if told.isdigit() and "RANK" in os.environ and "MASTER_ADDR" in os.environ else 1


def are_joined() -> bool:
    """Return whether all of them have met."""
    return bool(_JOINED)


def joined(timeout: float) -> Launched:
    """Return all processes that were launched together, once they have come; ExecutionError where some do not."""
    if not _JOINED:
        _JOINED.append(_join(timeout))
    return _JOINED[0]


def _join(timeout: float) -> Launched:
    rank, size, since = int(os.environ["RANK"]), launched_size(), time.monotonic()
    try:
        meetings = _joining(rank, size, timeout)
        own = _served(timeout) if rank == 0 and not _is_launchers() else None
        port = meetings.exchanged(b"" if own is None else str(own.port).encode(), timeout, lambda: None)[0]
        store = _moved(own, int(port), rank, size, timeout) if port else _prefixed(meetings.name)
    except Failed as error:
        raise ExecutionError(f"rank {error.rank} failed: {error.text}") from None
    except Absent as error:
        found = absence(error, rank, min(timeout, time.monotonic() - since))
        _JOINING[0].fail(found.message)
        raise found from None
    _JOINING.clear()
    _STORE.clear()
    return Launched(store, rank, size)


def _prefixed(name: str) -> Any:
    """Return a part of the launcher's store, where the script's groups have others."""
    return torch_processes().PrefixStore(name, _STORE[0])


def _served(timeout: float) -> Any:
    """Return a store of rank 0's at any port: that which the launcher named is for the groups of the script."""
    place, limit = os.environ["MASTER_ADDR"], timedelta(seconds=timeout)
    return torch_processes().TCPStore(place, 0, None, True, limit, wait_for_workers=False)


def _moved(own: Any, port: int, rank: int, size: int, timeout: float) -> Any:
    """Return the store that rank 0 serves, once all know it and the one where they have met is gone.

    The script may make a group at once: whoever found the old store then would wait for rank 0 in vain.
    """
    first, place, limit = holder(_STORE[0], rank), os.environ["MASTER_ADDR"], timedelta(seconds=timeout)
    store = own or torch_processes().TCPStore(place, port, None, False, limit, wait_for_workers=False)
    Meetings(lambda: store, rank, size).exchanged(b"", timeout, lambda: None)
    _JOINING.clear()
    _STORE.clear()
    await_end(first)
    return store


def _is_launchers() -> bool:
    return os.environ.get(_LAUNCHER) == str(True)


def _joining(rank: int, size: int, timeout: float) -> Meetings:
    """Return the meetings of all processes that were launched together; Absent where rank 0 does not come.

    The store is the one that torch would make: of whoever launched them, or else rank 0's.
    """
    if not _JOINING:
        is_held = rank == 0 and not _is_launchers()
        place, limit = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timedelta(seconds=timeout)
        if not is_held:
            _await_store(place, timeout)
        found = torch_processes().TCPStore(*place, None, is_held, limit, wait_for_workers=False, multi_tenant=True)
        held = torch_processes().PrefixStore(f"tilewright/attempt {os.environ.get(_ATTEMPT, 0)}", found)
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


def holder(store: Any, rank: int) -> socket.socket | None:
    """Return what ends with the store of a group, where another process of the group holds it and may take it along."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if _is_launchers() or not isinstance(store, torch_processes().TCPStore) or rank == 0:
        return None
    with suppress(OSError):
        place = store.host.encode(), store.port  # a name that is text has Python load what letters of all scripts need
        found = socket.create_connection(place, LEAVING)
        found.settimeout(LEAVING)
        return found
    return None


def await_end(held: socket.socket | None) -> None:
    """Wait until what `holder` gave is gone."""
    if held is not None:
        with suppress(OSError):
            held.recv(1)
        held.close()


def torch_processes() -> Any:
    """Return torch's processes, which only programs of several load."""
    import torch.distributed

    return torch.distributed


_JOINED: list[Launched] = []
_JOINING: list[Meetings] = []
_STORE: list[Any] = []
"""Where processes that were launched together meet at first: kept while some have not come."""
_UNTOLD: list[str] = []
"""Why first calls have failed here, of which others do not know: rank 0 has not come."""
