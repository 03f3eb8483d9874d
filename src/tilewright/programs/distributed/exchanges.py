"""Exchanges: what ranks bring each other for a collective, by messages.

A short message is one way over the wire, and torch's own collectives are several of them, each begun by a thread of
torch's. What is long goes through those: they copy less.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping

from tilewright.arrays import np
from tilewright.core.region import Array


class Exchanges:
    """What has come for the collectives of a plan, each of which has a number there.

    `send` sends bytes to a rank, and `look` is called now and then by one that waits: for a collective, and a rank.
    """

    def __init__(self, send: Callable[[int, int, Array], None], look: Callable[[int, int], None], pause: float) -> None:
        self._send = send
        self._look = look
        self._pause = pause
        self._came = threading.Condition()
        self._held: defaultdict[tuple[int, int], deque[Array]] = defaultdict(deque)

    def begin(self) -> None:
        """Forget what came for a run that was given up."""
        with self._came:
            self._held.clear()

    def take(self, source: int, number: int, data: Array) -> None:
        """Keep what a rank has brought for a collective."""
        with self._came:
            self._held[number, source].append(np.array(data))
            self._came.notify_all()

    def exchanged(self, number: int, given: Mapping[int, Array]) -> Mapping[int, Array]:
        """Return what each rank has for this one, as bytes, given what this one has for each."""
        for rank, data in given.items():
            self._send(rank, number, data)
        return {rank: self.taken(number, rank) for rank in given}

    def taken(self, number: int, rank: int) -> Array:
        """Return what a rank has brought for a collective, once it has."""
        held = self._held[number, rank]
        while True:
            with self._came:
                if held or self._came.wait_for(lambda: bool(held), self._pause):
                    return held.popleft()
            self._look(number, rank)
