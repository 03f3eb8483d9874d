"""Digits: integers as signed bytes, which the matrix units multiply; each is worth 256 of the one before it.

Products of integers are kept to 32 bits, so digits that are worth more than that are left out. Written out one by one,
such products are as many instructions, which compilers take a minute for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.text import I8, I32, Text, Value
from tilewright.dtypes import INT8, INT16, INT32, DataType

KEPT = 4
"""Digits of a product of integers that are kept."""

Dot = Callable[[Value, Value, Value], Value]
"""Writes a product of two tiles of bytes, added to a third one."""


def narrowed(t: Text, value: Value, dtype: DataType) -> tuple[Value, DataType]:
    """Return integers as they were before they were made longer."""
    return t.lengthened.get(value, (value, dtype))


def digits(t: Text, value: Value, dtype: DataType) -> list[Value]:
    """Return signed bytes of which integers are made, the least first."""
    if dtype == INT8:
        return [value]
    if dtype.bits == INT8.bits:  # one that is too large for a signed byte is 256 more
        return [value, t.simple("arith.shrui", value, t.integer(7, I8, value.shape))]
    rest = as_element(t, value, dtype, INT32)
    found = [t.convert("arith.trunci", rest, I8)]
    for _ in range(2 if dtype.bits == INT16.bits else KEPT - 1):
        nearest = t.simple("arith.addi", rest, t.integer(128, I32, rest.shape))
        rest = t.simple("arith.shrsi", nearest, t.integer(8, I32, rest.shape))
        found.append(t.convert("arith.trunci", rest, I8))
    return found


def product(t: Text, lhs: Sequence[Value], rhs: Sequence[Value], start: Value, dot: Dot) -> Value:
    """Return a product of integers by their digits, added to what it starts with."""
    if len(lhs) == len(rhs) == 1:
        return dot(lhs[0], rhs[0], start)
    found = t.integer(0, I32, start.shape)
    for worth in reversed(range(min(len(lhs) + len(rhs) - 1, KEPT))):
        for place in range(max(worth - len(rhs) + 1, 0), min(worth + 1, len(lhs))):
            found = dot(lhs[place], rhs[worth - place], found)
        if worth:
            found = t.simple("arith.shli", found, t.integer(8, I32, found.shape))
    return t.simple("arith.addi", start, found)
