"""The arena: one block of memory per running kernel, its parts given out while code is emitted.

Offsets are constants of the code. A part that is given back is given out again, so tiles that are never alive together
share memory.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.native.llvm import PTR, Value
from tilewright.records import mutable
from tilewright.source import UNKNOWN, Span

ALIGNMENT = 64

Part = tuple[int, int]
"""Offset and size of a part of the arena."""


@mutable
class Claim:
    """A part of an arena while something holds it: from one moment of the plan to another, for what was written."""

    part: Part
    since: int
    span: Span
    until: int | None = None
    holder: object = None


@mutable
class Plan:
    """Who held which part of an arena, for whoever wants to see it; time counts statements."""

    claims: list[Claim] = field(default_factory=list[Claim])
    now: int = 0
    span: Span = UNKNOWN

    def advance(self, span: Span) -> None:
        """Go on to the next statement."""
        self.now, self.span = self.now + 1, span

    def take(self, part: Part) -> None:
        """Note that a part is held from now on."""
        self.claims.append(Claim(part, self.now, self.span))

    def hold(self, part: Part, holder: object) -> None:
        """Note what a part is held by."""
        for claim in self._open(part):
            claim.holder = holder

    def give_back(self, part: Part) -> None:
        """Note that a part is free again."""
        for claim in self._open(part):
            claim.until = self.now

    def _open(self, part: Part) -> list[Claim]:
        return [claim for claim in self.claims if claim.part == part and claim.until is None]


@mutable
class Arena:
    """Which bytes are free, and how many are needed in all."""

    size: int = 0
    free: list[Part] = field(default_factory=list[Part])
    base: Value = Value(PTR, "%arena")
    """Where it begins."""
    callees: int = 0
    """How many bytes what is called from here needs at most, after its own."""
    plan: Plan | None = None
    """Who holds what, where somebody wants to know."""

    def take(self, nbytes: int) -> Part:
        """Return offset and size of a part; the smallest free one that fits, else new memory at the end."""
        part = self._found(nbytes)
        if self.plan is not None:
            self.plan.take(part)
        return part

    def _found(self, nbytes: int) -> Part:
        size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        fitting = [part for part in self.free if part[1] >= size]
        if fitting:
            offset, available = min(fitting, key=lambda part: part[1])
            self.free.remove((offset, available))
            if available > size:
                self.free.append((offset + size, available - size))
            return offset, size
        offset, self.size = self.size, self.size + size
        return offset, size

    def hold(self, part: Part, holder: object) -> None:
        """Note what a part is held by, for whoever wants to see it."""
        if self.plan is not None:
            self.plan.hold(part, holder)

    def give_back(self, part: Part) -> None:
        """Make a part available again, joined with free neighbours."""
        if self.plan is not None:
            self.plan.give_back(part)
        offset, size = part
        for other in list(self.free):
            if other[0] + other[1] == offset or offset + size == other[0]:
                self.free.remove(other)
                offset, size = min(offset, other[0]), size + other[1]
        self.free.append((offset, size))
