"""Extents: arithmetic between numbers that the text knows and scalars of the running kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.backends.cuda.ttir.text import I32, I64, Text, Value
from tilewright.backends.cuda.ttir.values import Extent
from tilewright.records import record


def held(t: Text, extent: Extent) -> Value:
    """Return an extent as a scalar of 64 bits."""
    return t.integer(extent) if isinstance(extent, int) else extent


def plus(t: Text, a: Extent, b: Extent) -> Extent:
    """Return a sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else t.simple("arith.addi", held(t, a), held(t, b))


def minus(t: Text, a: Extent, b: Extent) -> Extent:
    """Return a difference."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if b == 0 else t.simple("arith.subi", held(t, a), held(t, b))


def times(t: Text, a: Extent, b: Extent) -> Extent:
    """Return a product."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return 0 if 0 in (a, b) else b if a == 1 else a if b == 1 else t.simple("arith.muli", held(t, a), held(t, b))


def least(t: Text, a: Extent, b: Extent) -> Extent:
    """Return the smaller of two."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if a == b else t.simple("arith.minsi", held(t, a), held(t, b))


def most(t: Text, a: Extent, b: Extent) -> Extent:
    """Return the larger of two."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if a == b else t.simple("arith.maxsi", held(t, a), held(t, b))


def counted(t: Text, extent: Extent, step: int) -> Extent:
    """Return how many elements there are, `step` from one to the next and the first among them."""
    if isinstance(extent, int) or step == 1:
        return extent if not isinstance(extent, int) else -(-extent // step)
    return t.simple("arith.divsi", t.simple("arith.addi", extent, t.integer(step - 1)), t.integer(step))


def positions(t: Text, shape: Sequence[int], axis: int) -> Value:
    """Return the number of each element along an axis, as 64 bits, with one element along every other axis."""
    return along(t, t.convert("arith.extsi", line(t, shape[axis]), I64), len(shape), axis)


def numbers(t: Text, shape: Sequence[int], axis: int) -> Value:
    """Return the number of each element of a shape along an axis, as 32 bits."""
    return spread(t, along(t, line(t, shape[axis]), len(shape), axis), shape)


def line(t: Text, count: int) -> Value:
    """Return a row of the numbers from zero on, as 32 bits."""
    return t.op(f"tt.make_range {{end = {count} : i32, start = 0 : i32}} : tensor<{count}xi32>", I32, (count,))


def along(t: Text, row: Value, rank: int, axis: int) -> Value:
    """Return a row of elements as those along one of several axes."""
    for place in (place for place in range(rank) if place != axis):
        shape = (*row.shape[:place], 1, *row.shape[place:])
        row = t.shaped("tt.expand_dims", row, shape, f" {{axis = {place} : i32}}")
    return row


def spread(t: Text, value: Value, shape: Sequence[int]) -> Value:
    """Return elements repeated along axes that have one of them."""
    return value if value.shape == tuple(shape) else t.shaped("tt.broadcast", value, shape)


@record
class Window:
    """Where along an axis a valid extent comes from: what a tensor has from a start on, if not `bad`.

    Asked in these terms, Triton sees that neighbours are valid together, and moves several at once.
    """

    start: Extent
    have: Extent
    want: Extent
    bad: Value


def inside(t: Text, shape: Sequence[int], valid: Sequence[Extent], windows: Mapping[Extent, Window]) -> Value | None:
    """Return which elements of a shape lie in its leading part; None where all of them do."""
    found: Value | None = None
    for axis, (extent, count) in enumerate(zip(shape, valid, strict=True)):
        for test in () if count == extent else _tests(t, shape, axis, count, windows.get(count)):
            test = spread(t, test, shape)
            found = test if found is None else t.simple("arith.andi", found, test)
    return found


def _tests(t: Text, shape: Sequence[int], axis: int, count: Extent, window: Window | None) -> Iterator[Value]:
    """Yield what has to hold of an element to be one of the first along an axis."""
    numbers = positions(t, shape, axis)

    def below(limit: Extent, number: Value) -> Value:
        return t.compare("cmpi slt", number, t.splat(held(t, limit), numbers.shape))

    if window is None:
        yield below(count, numbers)
        return
    start = t.splat(held(t, window.start), numbers.shape)
    yield below(window.have, t.simple("arith.addi", start, numbers))
    if window.want != shape[axis]:
        yield below(window.want, numbers)
    yield t.splat(t.simple("arith.xori", window.bad, t.constant("true", "i1")), numbers.shape)
