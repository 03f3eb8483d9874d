"""The arena: one block of memory per running kernel, its parts given out while code is emitted.

Offsets are constants of the code. A part that is given back is given out again, so tiles that are never alive together
share memory.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.native.llvm import PTR, Value
from tilewright.records import mutable

ALIGNMENT = 64

Part = tuple[int, int]
"""Offset and size of a part of the arena."""


@mutable
class Arena:
    """Which bytes are free, and how many are needed in all."""

    size: int = 0
    free: list[Part] = field(default_factory=list[Part])
    base: Value = Value(PTR, "%arena")
    """Where it begins."""
    callees: int = 0
    """How many bytes what is called from here needs at most, after its own."""

    def take(self, nbytes: int) -> Part:
        """Return offset and size of a part; the smallest free one that fits, else new memory at the end."""
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

    def give_back(self, part: Part) -> None:
        """Make a part available again, joined with free neighbours."""
        offset, size = part
        for other in list(self.free):
            if other[0] + other[1] == offset or offset + size == other[0]:
                self.free.remove(other)
                offset, size = min(offset, other[0]), size + other[1]
        self.free.append((offset, size))
