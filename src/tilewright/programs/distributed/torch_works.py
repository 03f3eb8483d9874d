"""Works: what torch does for a rank while it waits, and the memory that one of them uses after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.errors import ExecutionError

PATIENCE = timedelta(seconds=0.05)
"""Between two looks of a rank that waits for what torch does."""
SOON = 2.0
"""Seconds that rows which are on their way have to arrive, and what others say of a run that is over."""


def until_done(domain: Sequence[int], look: Callable[[], None], work: Any) -> None:
    """Wait for what torch does, with a `look` now and then, which may raise that the run is over."""
    while not _has_come(work):
        look()
    try:
        work.wait()  # which says at once how it went: it may have come to its end behind the last look
    except RuntimeError as error:
        _await_reason(look)
        raise ExecutionError(f"the processes of ranks {[*domain]} cannot be reached") from error


def _has_come(work: Any) -> bool:
    """Return whether what torch does has come to an end, soon, be it well or not."""
    try:
        return bool(work.wait(timeout=PATIENCE)) or work.is_completed()
    except RuntimeError:
        return bool(work.is_completed())


def _await_reason(look: Callable[[], None]) -> None:
    """Wait for what says why another process has given up a collective: it is on its way."""
    until = time.monotonic() + SOON
    while time.monotonic() < until:
        look()
        time.sleep(PATIENCE.total_seconds())


class Scratch:
    """Memory for collectives that follow each other."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def of(self, purpose: str, size: int) -> Array:
        """Return so many bytes, the same ones as before unless there were fewer."""
        if purpose not in self._held or len(self._held[purpose]) < size:
            self._held[purpose] = np.empty(size, np.uint8)
        return self._held[purpose][:size]
