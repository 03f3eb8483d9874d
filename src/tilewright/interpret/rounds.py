"""Rounds: the blocks of a launch, each run as far as the next barrier before any goes on.

Every block has a thread of its own, so that it can stop anywhere, and only one of them runs at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from tilewright.core.grid import BARRIER, CURRENT, Block

T = TypeVar("T")


class _Stopped(BaseException):
    """Ends a block that another one's mistake leaves waiting."""


class _Turn(Generic[T]):
    """A block that runs until it comes to a barrier or its end."""

    def __init__(self, block: Block, run: Callable[[int], T]) -> None:
        self.block, self.run = block, run
        self.results: list[T] = []
        self.error: BaseException | None = None
        self.is_stopped = self.is_over = False
        self.go, self.back = threading.Semaphore(0), threading.Semaphore(0)
        context = copy_context()
        threading.Thread(target=lambda: context.run(self._whole), daemon=True).start()

    def _whole(self) -> None:
        CURRENT.set(self.block)
        BARRIER.set(self._arrive)
        try:
            self._wait()
            self.results.append(self.run(self.block.index))
        except _Stopped:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True
            self.back.release()

    def _arrive(self) -> None:
        self.back.release()
        self._wait()

    def _wait(self) -> None:
        self.go.acquire()
        if self.is_stopped:
            raise _Stopped

    def advance(self) -> None:
        """Run as far as the next barrier, or to the end."""
        self.go.release()
        self.back.acquire()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """End it where it is."""
        self.is_stopped = True
        if not self.is_over:
            self.advance()


def in_rounds(count: int, run: Callable[[int], T]) -> list[T]:
    """Return what blocks give that run from barrier to barrier; the first mistake ends all of them."""
    turns = [_Turn(Block(index, count), run) for index in range(count)]
    try:
        while left := [turn for turn in turns if not turn.is_over]:
            for turn in left:
                turn.advance()
    finally:
        for turn in turns:
            turn.stop()
    return [result for turn in turns for result in turn.results]
