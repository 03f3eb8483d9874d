"""Grids: which block of how many is running, while the interpreter runs one."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from tilewright.records import record


@record
class Block:
    """One block of a grid; a program outside any grid is block 0 of 1."""

    index: int = 0
    count: int = 1


ONLY = Block()

CURRENT: ContextVar[Block] = ContextVar("block", default=ONLY)
"""The running block."""


def _alone() -> None:
    """Wait for nobody."""


BARRIER: ContextVar[Callable[[], None]] = ContextVar("barrier", default=_alone)
"""How the running block waits for the others of its launch."""
