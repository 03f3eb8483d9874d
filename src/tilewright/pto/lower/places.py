"""Places: where a tile can be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.pto.types import Space

ALIGNMENT = 32
"""Bytes that the start of a tile is a multiple of."""


@dataclass(eq=False)
class Slot:
    """A tile that is a variable of the tile IR."""

    key: Hashable
    var: Var
    shape: tuple[int, int]
    valid: tuple[Expr, Expr] | None = None
    """How much of it is valid, where only the running program knows."""
    needs_value: bool = False
    """Whether it may be read before anything has been written to it."""


@dataclass
class Arena:
    """The bytes of one local memory of a block, as far as they are used."""

    space: Space
    limit: int
    var: Var
    used: int = 0

    def touch(self, offset: Expr, nbytes: int | None) -> None:
        """Note an access: so many bytes from an offset on, or nobody knows how many."""
        reach = bounds(offset)
        end = self.limit if reach is None or nbytes is None else reach[1] + nbytes
        self.used = max(self.used, min(end, self.limit))

    def take(self, nbytes: int) -> int:
        """Return where so many bytes lie that nobody else has."""
        start = self.used
        self.used += (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        return start

    @property
    def size(self) -> int:
        """The bytes it needs."""
        return (self.used + 63) // 64 * 64
