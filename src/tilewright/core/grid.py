"""Grids: which block of how many is running, while the interpreter runs one."""

from __future__ import annotations

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
