"""Progress: how many turns each rank has had, for those that wait for others."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from time import monotonic
from typing import Protocol


class Ended(Exception):
    """The run is over, and whoever waits goes on in vain."""


class Progress(Protocol):
    """The turns of all ranks."""

    def advance(self, rank: int, turns: int, wakes: bool) -> None:
        """Take note that a rank has had so many more turns, which `wakes` others that may wait for it."""
        ...

    def until(self, rank: int, number: int) -> None:
        """Wait until a rank has had so many turns; Ended where the run is over."""
        ...


class ThreadProgress:
    """The turns of ranks that are threads of this process."""

    def __init__(self, ranks: int) -> None:
        self.turns = [0] * ranks
        self.changed = threading.Condition()
        self.waiting: list[tuple[int, int]] = []
        """What those who wait wait for: so many turns of a rank."""
        self.is_over = False

    def advance(self, rank: int, turns: int, wakes: bool) -> None:
        """Take note that a rank has had so many more turns, which `wakes` others that may wait for it."""
        self.turns[rank] += turns
        if wakes and self.waiting:
            with self.changed:
                self.changed.notify_all()

    def until(self, rank: int, number: int) -> None:
        """Wait until a rank has had so many turns; Ended where the run is over."""
        if self.turns[rank] >= number:
            return
        with self.changed:
            self.waiting.append((rank, number))
            try:
                while self.turns[rank] < number and not self.is_over:
                    self.changed.wait(0.1)  # whoever advances may have looked before this one said that it waits
            finally:
                self.waiting.remove((rank, number))
        if self.is_over:
            raise Ended

    def blocked(self) -> int:
        """Return how many wait for turns that have not been."""
        with self.changed:
            return sum(self.turns[rank] < number for rank, number in self.waiting)

    def each(self) -> dict[Hashable, tuple[object, float]]:
        """Return what ranks wait for: turns, and a number that grows while they do."""
        with self.changed:
            return {("turns", *wait): (wait, monotonic()) for wait in self.waiting}

    def begin(self) -> None:
        """Forget all turns."""
        self.turns[:] = [0] * len(self.turns)
        self.is_over = False

    def end(self) -> None:
        """Let all who wait go on."""
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
