"""Grids: which block of how many is running, while the interpreter runs one."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Block(NamedTuple):
    """One block of a grid."""

    index: int
    count: int


CURRENT: ContextVar[Block] = ContextVar("block", default=Block(0, 1))
"""The running block; a program outside any grid is block 0 of 1."""
