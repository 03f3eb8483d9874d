"""Lines: narrow elements put together until they fill a vector, and written past the caches as one.

A cache line that is written in pieces waits for all of them in one of a few buffers, and each piece is a store.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.streaming import store_past_caches
from tilewright.native.llvm import Builder, Value, element, lanes, vector

WORD = 4
"""Bytes of an element that fills a vector by itself, of as many as are computed together."""


def turns_of_line(size: int) -> int:
    """Return how many vectors of elements of some bytes fill one when they are stored."""
    return max(WORD // size, 1)


class Lines:
    """What a block of columns writes past the caches, by whom; a block fills the vectors that it begins."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self._parts: dict[object, list[Value]] = {}
        self._begins: dict[object, Value] = {}

    def put(self, key: object, value: Value, pointer: Value, size: int) -> None:
        """Emit the store of elements of some bytes, of narrow ones together with those that come next."""
        parts, begin = self.part(key, value, pointer)
        if len(parts) < turns_of_line(size):
            return
        del self._parts[key], self._begins[key]
        joined = kept(self.b, _joined(self.b, parts))
        store_past_caches(self.b, joined, begin, lanes(joined.type) * size)

    def part(self, key: object, value: Value, pointer: Value) -> tuple[list[Value], Value]:
        """Return what is there of somebody by now, with one more vector, and where it begins."""
        parts = self._parts.setdefault(key, [])
        parts.append(value)
        return parts, self._begins.setdefault(key, pointer)


def _joined(b: Builder, parts: Sequence[Value]) -> Value:
    """Return vectors one after the other, as many as are a power of two."""
    while len(parts) > 1:
        parts = [_pair(b, *parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return parts[0]


def _pair(b: Builder, low: Value, high: Value) -> Value:
    count = 2 * lanes(low.type)
    order = ", ".join(f"i32 {lane}" for lane in range(count))
    return b.value(vector(element(low.type), count), f"shufflevector {low}, {high}, <{count} x i32> <{order}>")


def kept(b: Builder, value: Value) -> Value:
    """Return lanes of which LLVM does not know where they come from: one that truncates and stores forgets the hint."""
    if element(value.type) == "half":
        value = b.convert("bitcast", value, vector("i16", lanes(value.type)))
    is_narrow = element(value.type) in ("i8", "i16")
    return b.value(value.type, f'call {value.type} asm "", "=x,0"({value})') if is_narrow else value
