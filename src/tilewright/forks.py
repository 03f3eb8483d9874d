"""Forks: what a child finds that was forked while other threads were at work.

Those threads are not there. A lock that one of them held would never be freed, so ours are new in the child. Other
things cannot be made new: LLVM in the middle of a module, a Python module that is half imported, the collector while it
is paused. Work on such is *undivided*: a fork waits for it, and no other begins until the fork is done.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

PATIENCE, COURTESY = 30.0, 0.1
"""Seconds that a fork waits for work, and work for a fork: each may hold a lock that the other cannot go on without."""


class Lock:
    """A lock that its holder can take again, and that a forked child finds open."""

    def __init__(self) -> None:
        self._inner = threading.RLock()
        _LOCKS.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, or return False where somebody holds it and nobody is to wait."""
        return self._inner.acquire(blocking)

    def release(self) -> None:
        """Give the lock back."""
        self._inner.release()

    @property
    def __enter__(self) -> Callable[[], bool]:
        """C's own: an interrupt that came in a function of ours, the lock just taken, would leave it taken for good."""
        return self._inner.__enter__

    @property
    def __exit__(self) -> Callable[[Any, Any, Any], None]:
        return self._inner.__exit__

    def renew(self) -> None:
        """Become a lock that nobody holds."""
        self._inner = threading.RLock()


class computed_once(Generic[T]):
    """A property computed when first asked for; unlike functools.cached_property before Python 3.12 it locks nothing.

    Two threads may both compute it, and get one answer.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T | computed_once[T]:
        if instance is None:
            return self
        return vars(instance).setdefault(self._name, self._compute(instance))


class _Gate:
    """Who does undivided work: threads go in and out, and a fork waits until it is alone."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.depths: dict[int, int] = {}
        """How deep each thread is inside, by its identity."""
        self.forks = 0
        """How many wait to fork: they go first."""

    def enter(self) -> None:
        me = threading.get_ident()
        with self.changed:
            if me not in self.depths:
                self.changed.wait_for(lambda: not self.forks, COURTESY)
            self.depths[me] = self.depths.get(me, 0) + 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self.changed:
            self.depths[me] -= 1
            if not self.depths[me]:
                del self.depths[me]
                self.changed.notify_all()

    def close(self) -> None:
        """Wait for everybody else to leave, and let nobody in."""
        self.changed.acquire()
        self.forks += 1
        self.changed.wait_for(lambda: not self.depths.keys() - {threading.get_ident()}, PATIENCE)

    def open(self) -> None:
        """Let threads in again after `close`."""
        self.forks -= 1
        self.changed.notify_all()
        self.changed.release()

    def renewed(self) -> _Gate:
        """Return the gate for a child that has this thread alone."""
        made, me = _Gate(), threading.get_ident()
        made.depths = {me: self.depths[me]} if me in self.depths else {}
        return made


@contextmanager
def undivided() -> Generator[None, None, None]:
    """Let no fork happen inside but this thread's own."""
    _gate.enter()
    try:
        yield
    finally:
        _gate.leave()  # a child that was forked inside has another gate


def held_over_forks(lock: Callable[[], AbstractContextManager[Any]]) -> None:
    """Hold a lock of somebody else's library while a process is forked, so that the child finds what it guards whole.

    `lock` returns it, or nothing to hold where the library is not loaded.
    """
    _OTHERS.append(lock)


def after_fork(run: Callable[[], None]) -> None:
    """Have a function called in every forked child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=run)


def had(module: str) -> bool | None:
    """Return whether a module was imported when this process was forked; None for a process that was not."""
    return None if _imported is None else module in _imported


def _before() -> None:
    _gate.close()
    for lock in _OTHERS:
        _held.enter_context(lock())


def _after_in_parent() -> None:
    _held.close()
    _gate.open()


def _after_in_child() -> None:
    global _gate, _imported
    _held.close()
    _imported = frozenset(sys.modules)
    _gate = _gate.renewed()
    for lock in list(_LOCKS):
        lock.renew()


_LOCKS: weakref.WeakSet[Lock] = weakref.WeakSet()
_OTHERS: list[Callable[[], AbstractContextManager[Any]]] = []
_held = ExitStack()
_imported: frozenset[str] | None = None
_gate = _Gate()
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
