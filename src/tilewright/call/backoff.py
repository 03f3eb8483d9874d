"""Backing off: when to look again whether the calls of a program can do without Python.

What that takes is loaded then: most programs are called too seldom to need any of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tilewright.forks import Lock, undivided

if TYPE_CHECKING:
    from tilewright.call.files import UnchangedFile
    from tilewright.call.guards import Guards
    from tilewright.call.targets import Learned
    from tilewright.call.warm import Warm
    from tilewright.keep.reads import ReadSet

SOON, LATE = 3, 100
"""The call from which on others like it do without Python: where LLVM is loaded, and where that may have to load it."""

LONGEST = 64
"""Up to how many calls that no dispatcher takes go by between two looks at one: each look may cost what a call does."""


def hurry() -> None:
    """Let calls from now on be learned soon: whoever measures some wants them as they will be."""
    with suppress(ImportError):  # where nothing can be compiled
        from tilewright.native.target import llvm

        llvm()


class Backoff:
    """The calls of one program, counted: each look that taught nothing doubles the wait for the next."""

    def __init__(self) -> None:
        self._wait = 0
        self._calls = 0
        self._is_over = False
        self._warm: Warm | None = None

    def look(
        self,
        warm: Callable[[], Warm],
        learned: Callable[[], Learned | None],
        reads: ReadSet | UnchangedFile | None = None,
    ) -> None:
        """Let calls like one that went well be learned, where that is worth it and nobody else is at it.

        It ran what was made from some `reads`, where there were any. `warm` makes what takes such calls. ImportError of
        either says that they never can be taken: there is neither LLVM nor machine code that it has made before, or the
        program is not one that a dispatcher calls.
        """
        self._calls += 1
        wait = self._wait or (SOON if sys.modules.get("llvmlite") is not None else LATE)
        if self._is_over or self._calls < wait or not _lock.acquire(blocking=False):
            return
        is_new = False
        try:
            with undivided():
                is_new = self._learn(warm, learned, reads)
        except ImportError:
            self._is_over = True
        finally:
            _lock.release()
        self._calls, self._wait = 0, 1 if is_new else min(2 * wait, LONGEST)

    def forget(self) -> None:
        """Let all calls be counted again, and none be taken; what another thread learns meanwhile is waited for."""
        with _lock:
            if self._warm is not None:
                self._warm.leave()
            self._warm, self._calls, self._wait = None, 0, 0

    def _learn(
        self, warm: Callable[[], Warm], learned: Callable[[], Learned | None], reads: ReadSet | UnchangedFile | None
    ) -> bool:
        """Return whether calls like one go without Python from now on, and have not before."""
        from tilewright.call.warm import is_native

        if not is_native():
            raise ImportError
        self._warm = self._warm or warm()
        call = learned()
        return call is not None and self._warm.learn(call, partial(guards_of, reads))


def guards_of(reads: ReadSet | UnchangedFile | None) -> Guards | None:
    """Return the guards of something that was read, None where it has changed or only Python can look at it."""
    from tilewright.call.guards import Guards
    from tilewright.keep.reads import ReadSet

    if reads is None:
        return Guards()
    return Guards.of(reads) if isinstance(reads, ReadSet) else reads.guards()


_lock = Lock()
