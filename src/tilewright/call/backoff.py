"""Backing off: when to look again whether the calls of a program can do without Python."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tilewright.forks import Lock, undivided

SOON, LATE = 3, 100
"""The call from which on others like it do without Python: where LLVM is loaded, and where that may have to load it."""

LONGEST = 64
"""Up to how many calls that no dispatcher takes go by between two looks at one: each look may cost what a call does."""


class Backoff:
    """The calls of one program, counted: each look that taught nothing doubles the wait for the next."""

    def __init__(self) -> None:
        self._wait = 0
        self._calls = 0
        self._is_over = False

    def look(self, learn: Callable[[], bool]) -> None:
        """Let calls like one that went well be learned, where that is worth it and nobody else is at it.

        ImportError says that they never can be: there is neither LLVM nor machine code that it has made before.
        """
        self._calls += 1
        self._wait = self._wait or (SOON if sys.modules.get("llvmlite") is not None else LATE)
        if self._is_over or self._calls < self._wait or not _lock.acquire(blocking=False):
            return
        learned = False
        try:
            with undivided():
                learned = learn()
        except ImportError:
            self._is_over = True
        finally:
            _lock.release()
        self._calls, self._wait = 0, 1 if learned else min(2 * self._wait, LONGEST)


_lock = Lock()
