"""Boxes: extents from a tile's origin on in which it holds data, and several of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.backends.cpu.emit.values import Joined, Part, static
from tilewright.core.types import swapped
from tilewright.native.llvm import Builder, Value, i64


def outside(b: Builder, joined: Joined, needed: Sequence[Value]) -> Value | None:
    """Return whether something that is needed of a tile lies outside of all its boxes, None where surely not."""
    axis, starts = joined.axis, joined.starts
    ends = [least(b, needed[axis], start) for start in starts[1:]] + [needed[axis]]
    lacks = list[Value]()
    for part, end in zip(joined.parts, ends, strict=True):
        inside = [*needed]
        inside[axis] = minus(b, end, part.start)
        lack = beyond(b, part.box, inside)
        lacks += [] if lack is None else [lack]
    return reduce(lambda x, y: b.op("or", x, y), lacks) if lacks else None


def cut(b: Builder, joined: Joined, offsets: Sequence[Value]) -> Joined:
    """Return what is left of all parts from an element on."""
    axis, parts = joined.axis, list[Part]()
    for part in joined.parts:
        box = [minus(b, have, offset) for have, offset in zip(part.box, offsets, strict=True)]
        box[axis] = minus(b, part.box[axis], minus(b, offsets[axis], part.start))
        parts.append(Part(minus(b, part.start, offsets[axis]), tuple(box)))
    return Joined(axis, tuple(parts))


def turned(joined: Joined, axis1: int, axis2: int) -> Joined:
    """Return the same where two axes, counted from the last, are swapped."""
    axis = {axis1: axis2, axis2: axis1}.get(joined.axis, joined.axis)
    return Joined(axis, tuple(Part(part.start, swapped(part.box, axis1, axis2)) for part in joined.parts))


def side_by_side(b: Builder, first: Joined, width: Value, second: Joined) -> Joined:
    """Return the parts of a tile that is so wide, and those of another beside it."""
    own = tuple(Part(least(b, part.start, width), part.box) for part in first.parts)
    return Joined(first.axis, own + tuple(Part(plus(b, part.start, width), part.box) for part in second.parts))


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
