"""Locks that a forked child finds open: whoever held one is not there."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType


class Lock:
    """A lock that its holder can take again."""

    def __init__(self) -> None:
        self._inner = threading.RLock()
        _ALL.add(self)

    def __enter__(self) -> None:
        self._inner.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inner.release()

    def renew(self) -> None:
        """Become a lock that nobody holds."""
        self._inner = threading.RLock()


_ALL: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew() -> None:
    for lock in list(_ALL):
        lock.renew()


os.register_at_fork(after_in_child=_renew)
