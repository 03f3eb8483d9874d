"""Digits: integers as signed bytes, which the matrix units multiply; each is worth 256 of the one before it.

Products of integers are kept to 32 bits, or to the 64 that their factors have, so digits that are worth more than that
are left out. Written out one by one, such products are as many instructions, which compilers take a minute for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.text import I8, I32, I64, Text, Value
from tilewright.dtypes import INT8, INT32, INT64, DataType

Dot = Callable[[Value, Value, Value], Value]
"""Writes a product of two tiles of bytes, added to a third one."""


def narrowed(t: Text, value: Value, dtype: DataType) -> tuple[Value, DataType]:
    """Return integers as they were before they were made longer."""
    return t.lengthened.get(value, (value, dtype))


def digits(t: Text, value: Value, dtype: DataType, kept: int) -> list[Value]:
    """Return signed bytes of which integers are made, the least first, up to as many as a product keeps."""
    if dtype == INT8:
        return [value]
    if dtype.bits == INT8.bits:  # one that is too large for a signed byte is 256 more
        return [value, t.simple("arith.shrui", value, t.integer(7, I8, value.shape))]
    rest = as_element(t, value, dtype, INT32 if kept == INT32.get_byte() else INT64)
    found = [t.convert("arith.trunci", rest, I8)]
    while len(found) < min(dtype.get_byte() + 1, kept):  # what a signed byte is short of is one more of the next
        nearest = t.simple("arith.addi", rest, t.integer(128, rest.element, rest.shape))
        rest = t.simple("arith.shrsi", nearest, t.integer(8, rest.element, rest.shape))
        found.append(t.convert("arith.trunci", rest, I8))
    return found


def product(t: Text, lhs: Sequence[Value], rhs: Sequence[Value], start: Value, dot: Dot) -> Value:
    """Return a product of integers by their digits, added to what it starts with."""
    if start.element == I64:
        return _long_product(t, lhs, rhs, start, dot)
    if len(lhs) == len(rhs) == 1:
        return dot(lhs[0], rhs[0], start)
    found = t.integer(0, I32, start.shape)
    for worth in reversed(range(min(len(lhs) + len(rhs) - 1, INT32.get_byte()))):
        found = _of_worth(worth, lhs, rhs, found, dot)
        if worth:
            found = t.simple("arith.shli", found, t.integer(8, I32, found.shape))
    return t.simple("arith.addi", start, found)


def _of_worth(worth: int, lhs: Sequence[Value], rhs: Sequence[Value], found: Value, dot: Dot) -> Value:
    """Return a sum with the products of all digits added that are worth so much together."""
    for place in range(max(worth - len(rhs) + 1, 0), min(worth + 1, len(lhs))):
        found = dot(lhs[place], rhs[worth - place], found)
    return found


def _long_product(t: Text, lhs: Sequence[Value], rhs: Sequence[Value], start: Value, dot: Dot) -> Value:
    """Return a product of 64 bits: the matrix units sum what is worth the same in 32, which holds it."""
    found = t.integer(0, I64, start.shape)
    for worth in reversed(range(min(len(lhs) + len(rhs) - 1, INT64.get_byte()))):
        alike = _of_worth(worth, lhs, rhs, t.integer(0, I32, start.shape), dot)
        shifted = t.simple("arith.shli", found, t.integer(8, I64, found.shape))
        found = t.simple("arith.addi", shifted, t.convert("arith.extsi", alike, I64))
    return t.simple("arith.addi", start, found)
