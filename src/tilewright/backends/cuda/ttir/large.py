"""Large tiles: what shared memory has no room for goes through memory that the block has for itself, piece by piece.

A whole tile is stored and loaded in the order of its rows alone, as Triton would move it through shared memory to hand
it from one order to another. In between, small pieces are brought to where they belong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.text import I64, Text, Value, pointer_to
from tilewright.backends.cuda.ttir.values import Extent
from tilewright.records import record

PIECE = 2048
"""Elements that are brought to their places at once."""
PARTS, LEAST = 4, 32
"""Pieces of a product or of its factors that shared memory has room for, and how many rows or columns they have at
least."""

Places = list[Value]
"""Where along each axis elements lie."""


def is_large(t: Text, *values: Value) -> bool:
    """Return whether tiles do not fit the shared memory of a block together."""
    return sum(prod(value.shape) * _size(value) for value in values) > t.room


def _size(value: Value) -> int:
    return max(int(re.sub(r"\D", "", value.element)) // 8, 1)


@record
class Laid:
    """A tile in memory, row by row, padding included."""

    t: Text
    pointer: Value
    shape: Sequence[int]

    @staticmethod
    def room(t: Text, like: Value, shape: Sequence[int]) -> Laid:
        """Return memory for a tile of a shape, with such elements."""
        return Laid(t, t.bits(t.reserve([*shape, _size(like)]), pointer_to(like.element)), shape)

    @staticmethod
    def of(t: Text, value: Value) -> Laid:
        """Return a tile written to memory, where all threads see it."""
        made = Laid.room(t, value, value.shape)
        t.do("gpu.barrier")  # around a loop, what was there before may still be read
        made.put(made._rows(0, value.shape), value)
        t.do("gpu.barrier")
        return made

    def whole(self) -> Value:
        """Return all of it."""
        return self.at(self._rows(0, self.shape))

    def part(self, first: Extent, shape: Sequence[int]) -> Value:
        """Return so many rows and columns from the element with some number on."""
        return self.at(self._rows(first, shape))

    def put_part(self, first: Extent, value: Value) -> None:
        """Write rows from the element with some number on."""
        self.put(self._rows(first, value.shape), value)

    def at(self, numbers: Value) -> Value:
        """Return the elements with some numbers, counted along its rows."""
        found = self._addresses(numbers)
        return self.t.op(f"tt.load {found} : {found.type}", self._element, numbers.shape)

    def put(self, numbers: Value, value: Value) -> None:
        """Write the elements with some numbers."""
        found = self._addresses(numbers)
        self.t.do(f"tt.store {found}, {value} : {found.type}")

    @property
    def _element(self) -> str:
        return self.pointer.element.removeprefix("!tt.ptr<").removesuffix(">")

    def _addresses(self, numbers: Value) -> Value:
        first = self.t.splat(self.pointer, numbers.shape)
        return self.t.op(f"tt.addptr {first}, {numbers} : {first.type}, {numbers.type}", first.element, numbers.shape)

    def _rows(self, first: Extent, shape: Sequence[int]) -> Value:
        """Return the numbers of the elements of a part, which spans the last axes."""
        t, found = self.t, self.t.splat(extents.held(self.t, first), shape)
        for axis in range(len(shape)):
            step = prod(self.shape[len(self.shape) - len(shape) + axis + 1 :])
            places = extents.positions(t, shape, axis)
            apart = t.simple("arith.muli", places, t.integer(step, I64, places.shape)) if step > 1 else places
            found = t.simple("arith.addi", found, extents.spread(t, apart, shape))
        return found


def turned(t: Text, value: Value, order: Sequence[int]) -> Value:
    """Return elements with their axes in another order."""
    if not is_large(t, value):
        return t.turned(value, order)

    def source(places: Places, numbers: Value) -> Places:
        return [places[order.index(axis)] for axis in range(len(order))]

    return moved(t, value, [value.shape[axis] for axis in order], source)


def moved(t: Text, value: Value, shape: Sequence[int], source: Callable[[Places, Value], Places]) -> Value:
    """Return a tile of elements of another one: `source` gives where those lie that come to some places.

    It is given the places along each axis, and the numbers along rows.
    """
    given = Laid.of(t, value)
    made, count = Laid.room(t, value, shape), prod(shape)
    some, turn = min(count, PIECE), t.fresh(I64)
    with t.block(f"scf.for {turn} = {t.integer(0)} to {t.integer(count)} step {t.integer(some)} : i64 {{"):
        numbers = t.simple("arith.addi", extents.positions(t, (some,), 0), t.splat(turn, (some,)))
        found = source(_split(t, numbers, shape), numbers)
        made.put(numbers, given.at(_joined(t, found, value.shape)))
    t.do("gpu.barrier")
    return made.whole()


def _split(t: Text, numbers: Value, shape: Sequence[int]) -> Places:
    """Return where along each axis of powers of two elements lie that numbers count along rows."""
    found: Places = []
    for extent in reversed(shape[1:]):
        found.append(t.simple("arith.andi", numbers, t.integer(extent - 1, I64, numbers.shape)))
        numbers = t.simple("arith.shrui", numbers, t.integer(extent.bit_length() - 1, I64, numbers.shape))
    return [numbers, *reversed(found)]


def _joined(t: Text, places: Places, shape: Sequence[int]) -> Value:
    found, *rest = places
    for place, extent in zip(rest, shape[1:], strict=True):
        found = t.simple("arith.muli", found, t.integer(extent, I64, found.shape))
        found = t.simple("arith.addi", found, place)
    return found


def product(t: Text, a: Value, b: Value, start: Value, dot: Callable[[Value, Value, Value], Value]) -> Value:
    """Return a product added to what it starts with, some rows at a time and a part of the common axis at a time.

    `dot` writes that of two parts.
    """
    (*_, rows, length), columns = a.shape, b.shape[-1]
    left, right, made = (Laid.of(t, each) for each in (a, b, start))
    high = _fitting(t, rows, columns * _size(start))
    deep = _fitting(t, length, (high + columns) * _size(a))
    row, at = t.fresh(I64), t.fresh(I64)
    ends = t.integer(0), t.integer(prod(a.shape[:-1])), t.integer(high)
    with t.block(f"scf.for {row} = {ends[0]} to {ends[1]} step {ends[2]} : i64 {{"):
        before = extents.times(t, t.simple("arith.divsi", row, t.integer(rows)), length * columns)
        begun = made.part(extents.times(t, row, columns), (high, columns))
        held, found = (t.fresh(begun.element, begun.shape) for _ in range(2))
        head = f"{found} = scf.for {at} = {t.integer(0)} to {t.integer(length)} step {t.integer(deep)}"
        with t.block(f"{head} iter_args({held} = {begun}) -> ({held.type}) : i64 {{"):
            x = left.part(extents.plus(t, extents.times(t, row, length), at), (high, deep))
            y = right.part(extents.plus(t, before, extents.times(t, at, columns)), (deep, columns))
            more = dot(x, y, held)
            t.do(f"scf.yield {more} : {more.type}")
        made.put_part(extents.times(t, row, columns), found)
    t.do("gpu.barrier")
    return made.whole()


def _fitting(t: Text, extent: int, bytes_: int) -> int:
    """Return how many rows of so many bytes a piece has, a power of two."""
    wanted = max(t.room // PARTS // bytes_, LEAST)
    return min(extent, 1 << (wanted.bit_length() - 1))
