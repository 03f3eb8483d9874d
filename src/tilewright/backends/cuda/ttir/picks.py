"""Picks: elements of a tile by their number along an axis, or counted along its rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import flat
from tilewright.backends.cuda.ttir.large import Laid, is_large, moved
from tilewright.backends.cuda.ttir.text import I32, I64, Text, Value, type_of
from tilewright.backends.cuda.ttir.values import Extent, padded

FEW = 1024
"""Triton gathers no more elements than there are out of fewer than a block has threads."""


def picked(t: Text, value: Value, numbers: Value, axis: int) -> Value:
    """Return the elements with some numbers along an axis, which are clamped to those that there are."""
    element = numbers.element
    low, high = (t.integer(end, element, numbers.shape) for end in (0, value.shape[axis] - 1))
    inside = t.simple("arith.minsi", t.simple("arith.maxsi", numbers, low), high)
    shape = (*value.shape[:axis], numbers.shape[axis], *value.shape[axis + 1 :])
    narrow = t.convert("arith.trunci", inside, I32) if element == I64 else inside
    index = extents.spread(t, narrow, shape)
    held = t.convert("arith.extui", value, "i8") if value.element == "i1" else value
    while held.shape[axis] < shape[axis] and prod(held.shape) < FEW:
        held = t.doubled(held, held, axis)
    if is_large(t, held):
        return _narrowed(t, _through_memory(t, held, index, axis), value)
    types = f"({held.type}, {index.type}) -> {type_of(held.element, shape)}"
    # a layout that Triton would choose itself is refused by its own assertion for single long rows
    said = f"{{axis = {axis} : i32, efficient_layout}}"
    found = t.op(f"tt.gather {held}[{index}] {said} : {types}", held.element, shape)
    return _narrowed(t, found, value)


def _narrowed(t: Text, found: Value, like: Value) -> Value:
    return t.convert("arith.trunci", found, "i1") if like.element == "i1" else found


def _through_memory(t: Text, value: Value, index: Value, axis: int) -> Value:
    """Return the elements with some numbers along an axis of a tile that is too large to be gathered from."""
    held = Laid.of(t, index)

    def source(places: list[Value], numbers: Value) -> list[Value]:
        return [*places[:axis], t.convert("arith.extsi", held.at(numbers), I64), *places[axis + 1 :]]

    return moved(t, value, index.shape, source)


def stretch(t: Text, value: Value, axis: int, start: Extent, count: int, step: int = 1) -> Value:
    """Return so many elements from a start on along an axis; what lies outside is any of them."""
    if start == 0 and count == value.shape[axis] and step == 1:
        return value
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    numbers = extents.positions(t, shape, axis)
    if step != 1:
        numbers = t.simple("arith.muli", numbers, t.integer(step, I64, numbers.shape))
    places = t.simple("arith.addi", numbers, t.splat(extents.held(t, start), numbers.shape))
    return picked(t, value, places, axis)


def counted(t: Text, value: Value, shape: Sequence[int], numbers: Value) -> Value:
    """Return the elements of a tile of some shape that numbers count along its rows."""
    line = flat(t, value)
    wide = flat(t, in_padding(t, shape, numbers))
    found = picked(t, line, wide, 0)
    return found if found.shape == numbers.shape else t.shaped("tt.reshape", found, numbers.shape)


def in_padding(t: Text, shape: Sequence[int], numbers: Value) -> Value:
    """Return numbers that count the elements of a shape along its rows as those that count padded rows."""
    wide = padded(tuple(shape))
    if wide[1:] == tuple(shape)[1:]:
        return numbers
    found: Value | None = None
    for place, step in zip(split(t, numbers, shape), steps(wide), strict=True):
        scaled = t.simple("arith.muli", place, t.integer(step, place.element, place.shape)) if step != 1 else place
        found = scaled if found is None else t.simple("arith.addi", found, scaled)
    assert found is not None
    return found


def steps(shape: Sequence[int]) -> list[int]:
    """Return how many elements one step along each axis passes over, counted along rows."""
    found = [1]
    for extent in reversed(shape[1:]):
        found.append(found[-1] * extent)
    return found[::-1]


def split(t: Text, numbers: Value, shape: Sequence[Extent]) -> list[Value]:
    """Return where along each axis elements lie that numbers count along the rows of a shape."""
    found, rest = list[Value](), numbers
    for extent in reversed(shape[1:]):
        size = t.splat(extents.held(t, extent), numbers.shape)
        size = t.convert("arith.trunci", size, numbers.element) if numbers.element != I64 else size
        found.append(t.simple("arith.remsi", rest, size))
        rest = t.simple("arith.divsi", rest, size)
    return [rest, *reversed(found)]
