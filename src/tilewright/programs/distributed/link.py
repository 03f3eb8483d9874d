"""Links: messages between the processes of a group that share no memory, over torch.distributed's point-to-point.

A message is some numbers, and perhaps bytes behind them. Each process has a thread for each other one that hears what
it sends, one message after the other, and answers those that ask. What one process sends another arrives in that
order. Receives are posted before anything is sent, so that a short message is one way over the wire: torch has to ask
whoever is sent something without one where it is to go.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any, Protocol
from weakref import WeakValueDictionary

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.errors import ExecutionError
from tilewright.programs.distributed.torch_works import give_up

HEAD = 32
"""How many numbers a message has: its plan, how many bytes follow, under what tag an answer of how many bytes is to
come, and those of its sender."""
_OWN = 4
ROOM = 1 << 20
"""Bytes that lie behind the numbers of messages of all processes together, each an equal share; those of a message that
has more are one of their own."""
POSTED = 8
"""Receives that wait for each other process: one is heard while others arrive. Of one that is stopped they take what
a run tells it, from the meeting that it does not come to until all give up: whoever sent it more would hang as well."""
GRACE = 3.0
"""Seconds that a message may take beyond the limit of waits, which says more when it is over."""
_NUMBERS, _BYTES, _ANSWERS = 1, 2, 3
"""Tags of torch's: messages, bytes that are ones of their own, and from here on those of answers."""
_ANSWERED, _GOODBYE = 0, -1
"""What stands for the plan of a process that is about to end, and of the answer to it."""
FOREVER = timedelta(days=300)
SOON = 0.1
"""Seconds to wait for messages that are on their way."""
PATIENCE = 5.0
"""Seconds that other processes have to answer one that is about to end: each does so at once, or has ended itself."""


class Hearer(Protocol):
    """A plan, as messages know it."""

    def hear(self, source: int, numbers: Sequence[int], data: Array) -> Array | None:
        """Take some numbers and bytes from a process; return the answer to one that asks."""
        ...


class Link:
    """The messages of this process."""

    def __init__(self, store: Callable[[], Any], name: str, rank: int, size: int) -> None:
        self._store = store
        self._name = name
        self._domains: dict[tuple[int, ...], Any] = {}
        self.rank = rank
        self._group: Any = self._made(range(size), "messages")
        self.lost: set[int] = set()
        """The ranks whose processes have ended."""
        self.is_broken = False
        """Whether a message was given up halfway: nobody may send over it any more."""
        self.is_given_up = False
        """Whether a collective was given up halfway: messages go on, to say why, and the next run has other groups."""
        self.plans: WeakValueDictionary[int, Hearer] = WeakValueDictionary()
        """Who hears the messages of which plan; those of one that is gone are dropped."""
        self.made = 0
        """How many plans there were."""
        self.timeout = timedelta(seconds=1)
        """How long a message may take."""
        self._deadlines: dict[int, float] = {}
        """Until when those may take that are on their way, by the threads that wait for them."""
        self.room = ROOM // size
        self._locks = [threading.Lock() for _ in range(size)]
        self._asked = count(_ANSWERS)
        self._is_closing = False
        self._threads = {peer: self._hearing(peer) for peer in range(size) if peer != rank}
        atexit.register(self.close)

    def _hearing(self, peer: int) -> threading.Thread:
        """Return a thread that hears another process, which may send from now on."""
        made = threading.Thread(target=self._hear, args=(peer,), daemon=True, name=f"tilewright-link-{peer}")
        made.start()
        return made

    def close(self) -> None:
        """End all threads: one of ours that heard a message while Python ends would abort it, and so would gloo's."""
        if self._is_closing:
            return
        self._is_closing, self.timeout = True, timedelta(seconds=SOON)
        atexit.unregister(self.close)
        left = {peer: thread for peer, thread in self._threads.items() if thread.is_alive()}
        for peer in left:
            self.try_to_send(peer, _GOODBYE, [])
        until = time.monotonic() + PATIENCE
        for thread in left.values():
            thread.join(max(0.0, until - time.monotonic()))
        self.is_broken, self._group, self._domains = True, None, {}  # gloo's threads end with the last reference

    def abandon(self, held: object) -> None:
        """End what torch does in collectives that nobody waits for: its threads are not to find a process that ends.

        Torch gives up all that a group does where a message takes too long, as one does here that nobody sends. Those
        groups, and what is `held` of their collectives, stay for good: a thread of theirs may still wait, for which
        whoever destroys a group waits with Python's lock, or be the last to let go of a tensor, which takes that lock.
        """
        self.is_given_up = True
        ctypes.pythonapi.Py_IncRef(ctypes.py_object((held, self._domains)))
        for group in self._domains.values():
            give_up(group)
        self._domains = {}

    def _made(self, domain: Sequence[int], name: str) -> Any:
        """Return a new group of some ranks, which all of them make: torch knows nothing of it, and leaves it to us."""
        dist = _torch().distributed
        store = dist.PrefixStore(f"{self._name}/{name}", self._store())
        return dist.ProcessGroupGloo(store, domain.index(self.rank), len(domain), FOREVER)

    @property
    def is_usable(self) -> bool:
        """Whether another plan may be made for it."""
        return not self.is_broken and not self.is_given_up

    def domain(self, domain: tuple[int, ...]) -> Any:
        """Return the group for the collectives of some ranks."""
        if domain not in self._domains:
            self._domains[domain] = self._made(domain, "-".join(map(str, domain)))
        return self._domains[domain]

    def send(self, peer: int, plan: int, numbers: Sequence[int], data: Array | None = None) -> None:
        """Send a message; ExecutionError where the peer has ended or does not take it in time."""
        with self._locks[peer]:
            self._send(peer, plan, numbers, data)

    def try_to_send(self, peer: int, plan: int, numbers: Sequence[int], data: Array | None = None) -> bool:
        """Send a message, unless others are on their way or the peer has ended; return whether it was sent."""
        if peer in self.lost or not self._locks[peer].acquire(timeout=SOON):
            return False
        try:
            self._send(peer, plan, numbers, data)
            return True
        except ExecutionError:  # which whoever looks sees in `lost` and `is_broken`
            return False
        finally:
            self._locks[peer].release()

    def ask(self, peer: int, plan: int, numbers: Sequence[int], size: int) -> Array:
        """Return the answer to a message, so many bytes."""
        self._check(peer)
        tag, answer = next(self._asked), _torch().empty(size, dtype=_torch().uint8, device="cpu")
        coming = self._group.recv([answer], peer, tag)
        with self._locks[peer]:
            self._send(peer, plan, numbers, None, tag, size)
        self._wait(peer, lambda: coming)
        return answer.numpy()

    def _send(
        self, peer: int, plan: int, numbers: Sequence[int], data: Array | None, tag: int = 0, answer: int = 0
    ) -> None:
        size = 0 if data is None else data.nbytes
        short = size if size <= self.room else 0
        message: Any = np.zeros(8 * HEAD + short, np.uint8)
        message[: 8 * HEAD].view(np.int64)[: _OWN + len(numbers)] = [plan, size, tag, answer, *numbers]
        if data is not None and short:
            message[8 * HEAD :] = flat_bytes(data)
        packed = _torch().from_numpy(message)
        self._wait(peer, lambda: self._group.send([packed], peer, _NUMBERS))
        if data is not None and size > self.room:
            block = _torch().from_numpy(flat_bytes(data))
            self._wait(peer, lambda: self._group.send([block], peer, _BYTES))

    def _check(self, peer: int) -> None:
        if self.is_broken or peer in self.lost:
            raise ExecutionError(f"rank {peer} cannot be reached")

    def _wait(self, peer: int, begun: Callable[[], Any]) -> None:
        self._check(peer)
        self._deadlines[threading.get_ident()] = time.monotonic() + self.timeout.total_seconds()
        try:
            begun().wait(timeout=self.timeout)
        except RuntimeError as error:
            if self._gives_up():
                raise ExecutionError(f"rank {peer} does not answer") from error
            self.lost.add(peer)
            raise ExecutionError(f"the process of rank {peer} has ended") from error
        finally:
            self._deadlines.pop(threading.get_ident())

    def _gives_up(self) -> bool:
        """Return whether a message has taken too long: torch then closes what leads to all, who have not ended."""
        now = time.monotonic()
        self.is_broken = self.is_broken or any(now >= until for until in [*self._deadlines.values()])
        return self.is_broken

    def _hear(self, peer: int) -> None:
        """Hear what a process sends until it, or the group, is gone."""
        torch = _torch()
        slots = [torch.empty(8 * HEAD + self.room, dtype=torch.uint8, device="cpu") for _ in range(POSTED)]
        try:
            coming = [self._group.recv([slot], peer, _NUMBERS) for slot in slots]
            for turn in count():
                at = turn % POSTED
                coming[at].wait()
                if self._is_closing and int(slots[at][:8].view(torch.int64)) == _ANSWERED:
                    return  # the other has heard all: before, it would take this one to have ended in its last call
                self._heard(peer, slots[at])
                coming[at] = self._group.recv([slots[at]], peer, _NUMBERS)
        except RuntimeError:  # as torch says that a process, this one perhaps, has ended
            if not self._is_closing and not self._gives_up():
                self.lost.add(peer)

    def _heard(self, source: int, message: Any) -> None:
        """Do what a message asks for."""
        torch = _torch()
        plan, size, tag, wanted, *numbers = message[: 8 * HEAD].view(torch.int64).tolist()
        block = message[8 * HEAD : 8 * HEAD + size]
        if size > self.room:
            block = torch.empty(size, dtype=torch.uint8, device="cpu")
            self._group.recv([block], source, _BYTES).wait()
        if plan == _GOODBYE:
            self.try_to_send(source, _ANSWERED, [])
        hearer = self.plans.get(plan)
        answer = None if hearer is None else hearer.hear(source, numbers, block.numpy())
        if tag:
            given = torch.zeros(wanted, dtype=torch.uint8, device="cpu") if answer is None else torch.from_numpy(answer)
            self._group.send([given], source, tag).wait(timeout=self.timeout)


def flat_bytes(data: Any) -> Array:
    """Return the elements of an array as bytes one behind the other, copied where they do not lie like that."""
    packed: Any = np.ascontiguousarray(data)
    return packed.reshape(-1).view(np.uint8)


def _torch() -> Any:
    return sys.modules["torch"]
