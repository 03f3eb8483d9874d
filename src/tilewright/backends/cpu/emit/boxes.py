"""Boxes: extents from a tile's origin on in which it holds data, and several of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from tilewright.backends.cpu.emit.values import static
from tilewright.core.types import swapped
from tilewright.native.llvm import Builder, Value, i64
from tilewright.records import record

Box: TypeAlias = tuple[Value, ...]


@record
class Part:
    """One of several tiles side by side: where it begins, and the box from there on in which it holds data."""

    start: Value
    box: Box


@record
class Joined:
    """What holds data of a tile that is made of others side by side along an axis, the first of which begins at 0."""

    axis: int
    """Which one, counted from the last."""
    parts: tuple[Part, ...]

    @property
    def starts(self) -> tuple[Value, ...]:
        """Where the parts begin."""
        return tuple(part.start for part in self.parts)

    def lacks(self, b: Builder, needed: Sequence[Value]) -> Value | None:
        """Return whether what is needed of the tile lies outside of all boxes, None where surely not."""
        ends = [least(b, needed[self.axis], start) for start in self.starts[1:]] + [needed[self.axis]]
        lacks = list[Value]()
        for part, end in zip(self.parts, ends, strict=True):
            inside = [*needed]
            inside[self.axis] = minus(b, end, part.start)
            lack = beyond(b, part.box, inside)
            lacks += [] if lack is None else [lack]
        return reduce(lambda x, y: b.op("or", x, y), lacks) if lacks else None

    def sliced(self, b: Builder, offsets: Sequence[Value]) -> Joined:
        """Return what is left of all parts from an element on."""
        parts = list[Part]()
        for part in self.parts:
            box = [minus(b, have, offset) for have, offset in zip(part.box, offsets, strict=True)]
            box[self.axis] = minus(b, part.box[self.axis], minus(b, offsets[self.axis], part.start))
            parts.append(Part(minus(b, part.start, offsets[self.axis]), tuple(box)))
        return Joined(self.axis, tuple(parts))

    def turned(self, axis1: int, axis2: int) -> Joined:
        """Return the same where two axes, counted from the last, are swapped."""
        axis = {axis1: axis2, axis2: axis1}.get(self.axis, self.axis)
        return Joined(axis, tuple(Part(part.start, swapped(part.box, axis1, axis2)) for part in self.parts))

    def then(self, b: Builder, width: Value, other: Joined) -> Joined:
        """Return the parts of a tile that is so wide, and those of another beside it."""
        own = tuple(Part(least(b, part.start, width), part.box) for part in self.parts)
        return Joined(self.axis, own + tuple(Part(plus(b, part.start, width), part.box) for part in other.parts))


def beyond(b: Builder, have: Sequence[Value], needed: Sequence[Value]) -> Value | None:
    """Return whether something that is needed lies outside of a box, None where surely not."""
    if any(static(want) == 0 for want in needed):
        return None
    short: Value | None = None
    some: Value | None = None
    for extent, want in zip(have, needed, strict=True):
        if not surely_covers(extent, want):
            less = b.compare("icmp slt", extent, want)
            short = less if short is None else b.op("or", short, less)
        if static(want) is None:
            there = b.compare("icmp sgt", want, i64(0))
            some = there if some is None else b.op("and", some, there)
    return short if short is None or some is None else b.op("and", short, some)


def surely_covers(have: Value, want: Value) -> bool:
    """Return whether an extent reaches as far as another, whatever the program runs on."""
    a, b = static(have), static(want)
    return have == want or (a is not None and b is not None and a >= b)


def minus(b: Builder, extent: Value, by: Value) -> Value:
    """Return an extent less another, zero where it is shorter."""
    x, y = static(extent), static(by)
    if y == 0:
        return extent
    known = None if x is None or y is None else i64(max(x - y, 0))
    return known or b.intrinsic("llvm.smax", b.op("sub", extent, by), i64(0))


def plus(b: Builder, extent: Value, by: Value) -> Value:
    """Return an extent and another."""
    x, y = static(extent), static(by)
    return i64(x + y) if x is not None and y is not None else b.op("add", extent, by)


def least(b: Builder, extent: Value, other: Value) -> Value:
    """Return the shorter of two extents."""
    x, y = static(extent), static(other)
    return i64(min(x, y)) if x is not None and y is not None else b.intrinsic("llvm.smin", extent, other)
