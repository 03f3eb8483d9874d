"""Held puts: what a rank has written to another one, until it is known whether a signal follows that may go with it.

Who is written to learns of it by a signal alone, and most puts are followed by theirs at once: one message instead of
two, each of which wakes four threads.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Protocol

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.errors import ExecutionError

LONG = 1 << 18
"""Bytes beyond which a put is on its way at once: to copy them takes as long as a message."""


class Send(Protocol):
    """What sends a message that changes something."""

    def __call__(self, rank: int, numbers: Sequence[int], data: Array | None) -> None:
        """Send some numbers and bytes to a rank; ExecutionError where it cannot be reached."""
        ...


class HeldPuts:
    """The last put of this rank, if it has not left; threads send one after the other, so that no signal overtakes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: tuple[int, Sequence[int], Array] | None = None
        self._lock = threading.Lock()

    def put(self, rank: int, numbers: Sequence[int], data: Array) -> None:
        """Send a rank what is written to it, with the signal that follows if that is the next thing."""
        with self._lock:
            self._leave()
            if data.nbytes > LONG:
                self._send(rank, numbers, data)
            else:
                self._held = rank, numbers, np.array(data)

    def signal(self, rank: int, numbers: Sequence[int]) -> None:
        """Send a rank a signal, and with it what is held for that rank."""
        with self._lock:
            held = self._held
            if held is None or held[0] != rank:
                self._leave()
                self._send(rank, numbers, None)
            else:
                self._held = None
                self._send(rank, [*held[1], *numbers], held[2])

    def leave(self, but: Collection[int] = ()) -> None:
        """Send what is held, but for some ranks."""
        with self._lock:
            if self._held is not None and self._held[0] not in but:
                self._leave()

    def look_on(self) -> None:
        """Send what is still held when its rank does something else for long, or waits for whoever would see it."""
        if self._lock.acquire(blocking=False):
            try:
                with suppress(ExecutionError):  # of a rank that has ended, which whoever looks sees
                    self._leave()
            finally:
                self._lock.release()

    def _leave(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._send(*held)
