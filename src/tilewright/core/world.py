"""Worlds: the ranks around the one that is running, while the interpreter runs it.

A window is known by where its memory starts: the world tells which rank of which domain it belongs to, and where the
parts of the others lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.arrays import np
from tilewright.errors import ExecutionError
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.core.region import Array

OUTSIDE = "windows, ranks and signals are for functions that a host function dispatches"
UNHEARD = "every wait needs a notify of a peer that reaches its cell, with the value it expects"
"""What to do where ranks wait in vain."""


@record
class Membership:
    """A rank of a domain, with the memory of all of them as bytes, in the order of their ranks."""

    rank: int
    parts: tuple[Array, ...]


class World(Protocol):
    """Who knows the other ranks."""

    def membership(self, elements: Array) -> Membership:
        """Return whose part of which domain a window is."""
        ...

    def wait(self, cell: Array, expected: Sequence[range], wanted: str) -> None:
        """Let the others run until a cell holds one of some values; ExecutionError where it never will."""
        ...

    def look(self, cell: Array, expected: Sequence[range]) -> bool:
        """Let the others run, and return whether a cell holds one of some values then."""
        ...

    def told(self, cell: Array, value: int, is_set: bool) -> None:
        """Take note that the running rank sets a cell or adds to it, which tells what it did before."""
        ...

    def size(self) -> int:
        """Return how many ranks a host function has."""
        ...

    def buffer(self, size: int) -> Any:
        """Return a new buffer of so many bytes on every rank, as a host function knows it."""
        ...

    def collective(self, name: str, windows: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Take note of what all ranks of a domain are to do together."""
        ...


WORLD: ContextVar[World | None] = ContextVar("world", default=None)
"""The world of the running rank or host function."""


def world() -> World:
    """Return the world of the running rank; ExecutionError where there is none."""
    found = WORLD.get()
    if found is None:
        raise ExecutionError(OUTSIDE)
    return found


def elements_of(part: Any, shape: Sequence[int], dtype: Any) -> Array:
    """Return the start of a part, which is bytes, as elements of a window."""
    count = prod(shape) * np.dtype(dtype).itemsize
    return part[:count].view(dtype).reshape(tuple(shape))
