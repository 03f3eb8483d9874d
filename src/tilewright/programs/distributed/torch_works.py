"""Works: what torch does for a rank while it waits, and the memory that one of them uses after the other."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.errors import ExecutionError
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control, Segment

PATIENCE = timedelta(seconds=0.05)
"""Between two looks of a rank that waits for what torch does."""
SOON = 2.0
"""Seconds that rows which are on their way have to arrive, and what others say of a run that is over."""
AT_ONCE = timedelta(milliseconds=1)
_NOTHING = 1
"""The tag of a message that nobody sends."""


def until_done(domain: Sequence[int], look: Callable[[], None], work: Any) -> None:
    """Wait for what torch does, with a `look` now and then, which may raise that the run is over."""
    while not _has_come(work):
        look()
    try:
        work.wait()  # which says at once how it went: it may have come to its end behind the last look
    except RuntimeError as error:
        raise _broken(domain, look) from error


class Swaps:
    """What a rank sends others one to one and takes from them; another thread looks at what lasts, and ends it.

    Torch waits for it, without a time limit: it would give up all that is on its way once one were over.
    """

    def __init__(self, own: Segment) -> None:
        self._words = own.words
        self._lock = threading.Lock()
        self._lasting: tuple[Callable[[], None], Any] | None = None

    def until_done(
        self, domain: Sequence[int], look: Callable[[], None], group: Any, run: Callable[[Any], None]
    ) -> None:
        """Do what sends and takes, of which others `look` now and then whether the run is over; Ended where it is."""
        with self._lock:
            self._lasting = look, group
        try:
            if self._words[Control.ABORT]:  # since when nobody may look any more
                look()
            run(group)
        except RuntimeError as error:
            raise _broken(domain, look) from error
        finally:
            with self._lock:
                self._lasting = None

    def look(self) -> None:
        """Look at the swap that lasts, if any, from another thread: torch gives it up where the run is over."""
        with self._lock:
            if self._lasting is None:
                return
            look, group = self._lasting
            try:
                look()
            except Ended:
                give_up(group)


def give_up(group: Any) -> None:
    """Let all fail that a group has on its way: torch gives it up with a message that takes too long, as none comes.

    From a process that has ended, or has given up, none takes long: another one is asked then.
    """
    torch: Any = sys.modules["torch"]
    for peer in range(group.size()):
        if peer != group.rank():
            with suppress(RuntimeError):
                group.recv([torch.empty(1)], peer, _NOTHING).wait(timeout=AT_ONCE)


def _has_come(work: Any) -> bool:
    """Return whether what torch does has come to an end, soon, be it well or not."""
    try:
        return bool(work.wait(timeout=PATIENCE)) or work.is_completed()
    except RuntimeError:
        return bool(work.is_completed())


def _broken(domain: Sequence[int], look: Callable[[], None]) -> ExecutionError:
    """Wait for what says why another process has given up a collective, which is on its way; return that none comes."""
    until = time.monotonic() + SOON
    while time.monotonic() < until:
        look()
        time.sleep(PATIENCE.total_seconds())
    return ExecutionError(f"the processes of ranks {[*domain]} cannot be reached")


class Scratch:
    """Memory for collectives that follow each other."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def of(self, purpose: str, size: int) -> Array:
        """Return so many bytes, the same ones as before unless there were fewer."""
        if purpose not in self._held or len(self._held[purpose]) < size:
            self._held[purpose] = np.empty(size, np.uint8)
        return self._held[purpose][:size]
