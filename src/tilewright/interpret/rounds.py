"""Rounds: the blocks of a launch, each run as far as the next barrier before any goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tilewright.core.coroutines import Coroutine, in_turns
from tilewright.core.grid import BARRIER, CURRENT, Block

T = TypeVar("T")


def in_rounds(count: int, run: Callable[[int], T]) -> list[T]:
    """Return what blocks give that run from barrier to barrier."""
    return in_turns([partial(_block, Block(index, count), run) for index in range(count)])


def _block(block: Block, run: Callable[[int], T], coroutine: Coroutine[T]) -> T:
    CURRENT.set(block)
    BARRIER.set(coroutine.pause)
    return run(block.index)
