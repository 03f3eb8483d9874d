"""Places: where a tile can be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.pto.machine.lines import LINE
from tilewright.pto.types import Space

NBYTES = 256
"""The bytes of a vector register, and the bits of a mask."""


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


Span: TypeAlias = tuple[int, int]
"""The first byte of a stretch of memory, and the one behind its last."""


@dataclass
class Arena:
    """The bytes of one local memory of a block, as far as they are used.

    Where every access is known to stay within a few stretches that do not meet, each of those is a buffer of its own.
    """

    space: Space
    limit: int
    var: Var
    parts: tuple[Span, ...] = ()
    used: int = 0
    spans: list[Span] | None = field(default_factory=list[Span])
    """What is accessed, None where nobody knows."""
    pieces: dict[Span, Var] = field(default_factory=dict[Span, Var])
    """The buffers of the parts that were asked for."""
    base: Expr | None = None
    """Where it begins in a buffer that cores share."""

    def touch(self, offset: Expr, nbytes: int | None) -> None:
        """Note an access: so many bytes from an offset on, or nobody knows how many."""
        span = self._span(offset, nbytes)
        end = self.limit if span is None else span[1]
        self.used = max(self.used, min(end, self.limit))
        if span is None or self.spans is None:
            self.spans = None
        else:
            self.spans.append(span)

    def _span(self, offset: Expr, nbytes: int | None) -> Span | None:
        """Return the bytes an access may touch, None where that is not known to be inside the memory."""
        reach = bounds(offset)
        if reach is None or nbytes is None or reach[0] < 0 or reach[1] + nbytes > self.limit:
            return None
        return reach[0], reach[1] + nbytes

    def part(self, offset: Expr, nbytes: int | None) -> Span | None:
        """Return the part that an access stays within, None where that is all of the memory."""
        span = self._span(offset, nbytes)
        return next((p for p in self.parts if span is not None and p[0] <= span[0] and span[1] <= p[1]), None)

    def piece(self, part: Span) -> Var:
        """Return the buffer of a part."""
        if part not in self.pieces:
            self.pieces[part] = Var(f"{self.space.loc}_{part[0]}", self.var.type)
        return self.pieces[part]

    @property
    def stretches(self) -> tuple[Span, ...]:
        """The stretches of memory that accesses stay within, with nothing in common; none where that is not known."""
        found: list[Span] = []
        for first, end in sorted(self.spans or ()):
            if found and first < found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], end)
            else:
                found.append((first, end))
        return tuple(found) if len(found) > 1 else ()

    def take(self, nbytes: int) -> int:
        """Return where so many bytes lie that nobody else has."""
        start = self.used
        self.used += (nbytes + LINE - 1) // LINE * LINE
        return start

    @property
    def size(self) -> int:
        """The bytes it needs: what begins in the last tile of a vector core and is as long as a register lies in it."""
        behind = NBYTES if self.space is Space.VEC and self.used else 0
        return min((self.used + behind + 63) // 64 * 64, self.limit)
