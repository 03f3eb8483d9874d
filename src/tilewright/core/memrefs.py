"""Memory references: where an annotation says that a tile lives. It never changes a value."""

from __future__ import annotations

from typing import Any

from tilewright.core.types import MemRef as Placed
from tilewright.core.types import NamedMemRef as Named

__all__ = ["MemRef", "MemRefType", "Ptr", "PtrType"]


class MemRef:
    """A place for tiles: `pl.MemRef("name", slots=2)[i]` by name, `pl.MemRef(offset, size)` where it is known.

    Each tile keeps its own content, whatever the places of others: a name says which tiles may share one.
    """

    def __init__(self, *place: Any, slots: Any = None) -> None:
        """Say a name, or an offset and a size in bytes, perhaps after the allocation they are in."""
        if slots is not None and (not isinstance(slots, int) or isinstance(slots, bool) or slots < 1):
            raise ValueError(f"slots= of pl.MemRef must be a positive integer, got {slots!r}")
        if len(place) > 3 or (len(place) == 1 and not isinstance(place[0], str)):
            raise TypeError(f"pl.MemRef takes a name, or an offset and a size, got {place!r}")
        self.name = place[0] if place and not isinstance(place[0], int) else ""
        self.numbers = place[-2:] if len(place) > 1 else None
        self.slots: int | None = slots
        self.slot: Any = None
        """Which of them it is: a number or a scalar."""

    @property
    def placed(self) -> Placed | Named | None:
        """The place as types have it; None where neither a name nor numbers say which."""
        if self.numbers is not None:
            return Placed(*self.numbers, self.name, self.slots, self.slot)
        return Named(self.name, self.slots, self.slot) if self.name else None

    def __getitem__(self, index: Any) -> MemRef:
        """Return the place of one of the slots."""
        one = MemRef(*([self.name] if self.name else []), *(self.numbers or ()), slots=self.slots)
        one.slot = index
        return one

    def __repr__(self) -> str:
        parts = [repr(self.name)] if self.name else []
        parts += map(repr, self.numbers or ())
        parts += [f"slots={self.slots}"] if self.slots else []
        return f"pl.MemRef({', '.join(parts)}){'' if self.slot is None else f'[{self.slot}]'}"


class PtrType:
    """The type of an allocation, in text that the compiler wrote."""


class MemRefType:
    """The type of a place in memory, in text that the compiler wrote."""


Ptr = PtrType
