"""Coroutines: functions that stop in the middle and go on later, while the interpreter runs them.

Each has a thread of its own, so that it can stop anywhere, and only one of them runs at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class _Stopped(BaseException):
    """Ends a coroutine that another one's mistake leaves waiting."""


class Coroutine(Generic[T]):
    """A function that is given its coroutine, and runs until it pauses or ends."""

    def __init__(self, body: Callable[[Coroutine[T]], T]) -> None:
        self.body = body
        self.results: list[T] = []
        self.error: BaseException | None = None
        self.is_stopped = self.is_over = False
        self.go, self.back = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=copy_context().run, args=(self._whole,), daemon=True).start()

    def _whole(self) -> None:
        try:
            self._wait()
            self.results.append(self.body(self))
        except _Stopped:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True
            self.back.release()

    def _wait(self) -> None:
        self.go.acquire()
        if self.is_stopped:
            raise _Stopped

    def pause(self) -> None:
        """Let whoever runs it go on; return when it is to go on itself."""
        self.back.release()
        self._wait()

    def advance(self) -> None:
        """Run as far as the next pause, or to the end."""
        self.go.release()
        self.back.acquire()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """End it where it is."""
        self.is_stopped = True
        if not self.is_over:
            self.advance()


def in_turns(bodies: Sequence[Callable[[Coroutine[T]], T]]) -> list[T]:
    """Return what functions give that go on one after another, from pause to pause; the first mistake ends them all."""
    coroutines = [Coroutine(body) for body in bodies]
    try:
        while left := [coroutine for coroutine in coroutines if not coroutine.is_over]:
            for coroutine in left:
                coroutine.advance()
    finally:
        for coroutine in coroutines:
            coroutine.stop()
    return [result for coroutine in coroutines for result in coroutine.results]
