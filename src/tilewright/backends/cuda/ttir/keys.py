"""Keys: integers whose order is that of elements, alone or together with where those lie."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir.elements import Elements, computed, literal
from tilewright.backends.cuda.ttir.text import F32, I32, I64, Text, Value
from tilewright.dtypes import DataType


def key_of(t: Text, value: Value, dtype: DataType, *, descending: bool = False, nan_first: bool = False) -> Value:
    """Return keys in the order of elements, or in the opposite one: NaN is the largest, and both zeros are equal."""
    wide = computed(t, value, dtype)
    key = _of_float(wide, nan_first) if dtype.is_float() else _of_integer(wide)
    return t.simple("arith.xori", key, literal(t, -1, key)) if descending else key


def _of_float(x: Elements, nan_first: bool) -> Value:
    t = x.t
    element = I32 if x.value.element == F32 else I64
    zeroless = t.select((x == 0).value, x.like(0.0).value, x.value)
    bits = t.bits(zeroless, element)
    width = int(element[1:])
    sign = t.simple("arith.shrsi", bits, literal(t, width - 1, bits))
    flipped = t.simple("arith.andi", sign, literal(t, (1 << (width - 1)) - 1, bits))
    last = literal(t, -(1 << (width - 1)) if nan_first else (1 << (width - 1)) - 1, bits)
    return t.select((x != x).value, last, t.simple("arith.xori", bits, flipped))


def _of_integer(x: Elements) -> Value:
    t, bits = x.t, x.element.bits
    if bits < 32:
        return t.convert("arith.extsi" if x.element.is_signed_int() else "arith.extui", x.value, I32)
    if x.element.is_signed_int():
        return x.value
    return t.simple("arith.xori", x.value, literal(t, 1 << (bits - 1), x.value))


def last_where(t: Text, mask: Value | None, key: Value) -> Value:
    """Return keys that come after all others where a mask is false; numbers in order tell those from equal ones."""
    if mask is None:
        return key
    return t.select(mask, key, literal(t, (1 << (int(key.element[1:]) - 1)) - 1, key))


def ranked(t: Text, key: Value, numbers: Value) -> list[Value]:
    """Return keys of which no two are equal: numbers of 32 bits, none below zero, decide between equal ones."""
    if key.element == I64:
        return [key, numbers]
    wide = t.convert("arith.extsi", key, I64)
    high = t.simple("arith.shli", wide, t.integer(32, I64, wide.shape))
    return [t.simple("arith.ori", high, t.convert("arith.extui", numbers, I64))]


def number_of(t: Text, keys: Sequence[Value]) -> Value:
    """Return the numbers that keys were ranked by."""
    last = keys[-1]
    return t.convert("arith.trunci", last, I32) if last.element == I64 else last


def is_less(t: Text, a: Sequence[Value], b: Sequence[Value]) -> Value:
    """Return whether keys come before others, of which none are equal."""
    first = t.compare("cmpi slt", a[0], b[0])
    if len(a) == 1:
        return first
    tie = t.compare("cmpi eq", a[0], b[0])
    return t.simple("arith.ori", first, t.simple("arith.andi", tie, is_less(t, a[1:], b[1:])))


def smaller(t: Text, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    """Return those keys of two that come first."""
    first = is_less(t, a, b)
    return [t.select(first, x, y) for x, y in zip(a, b, strict=True)]
