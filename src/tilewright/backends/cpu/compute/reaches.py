"""Reaches: the least and the largest that integers can be, followed through the ops that weights are unpacked with.

A float of few bits holds small integers as they are: what is known to be small needs no rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tilewright.dtypes import BF16, BOOL, FP16, DataType
from tilewright.native.llvm import Value

Reach: TypeAlias = "tuple[int, int] | None"
Bounds: TypeAlias = "tuple[float, float] | None"

EXACT = {FP16: 1 << 11, BF16: 1 << 8}
"""Up to which number floats of few bits hold every integer."""


def stored_reach(dtype: DataType) -> Reach:
    """Return what elements in memory can be, where that is worth following."""
    return (int(dtype.limits[0]), int(dtype.limits[1])) if dtype.is_int() and dtype.bits <= 8 else None


def literal_reach(value: Value, dtype: DataType) -> Reach:
    """Return what a number can be: itself, where it is written in the code."""
    number = int(value.ref) if dtype.is_int() and value.ref.lstrip("-").isdigit() else None
    return None if number is None else (number, number)


def within(reach: Reach, dtype: DataType) -> Reach:
    """Return what integers can be as elements of another type: of those that may wrap nothing is known."""
    if reach is None or not (dtype.is_int() or dtype == BOOL):
        return None
    least, largest = dtype.limits
    return reach if least <= reach[0] and reach[1] <= largest else None


def compared(relation: str, a: Reach, b: Reach) -> Reach:
    """Return what comparing integers gives, where that is known: whatever has no place in common is not equal."""
    if a is None or b is None or max(a[0], b[0]) <= min(a[1], b[1]):
        return None
    return {"eq": (0, 0), "ne": (1, 1)}.get(relation)


def chosen(choose: Callable[[float, float], float], limit: float | None, bounds: Bounds) -> Bounds:
    """Return what the larger or the smaller of a number in the code and of others lies between."""
    low, high = bounds or (-math.inf, math.inf)
    return None if limit is None else (choose(low, limit), choose(high, limit))


def is_exact(reach: Reach, dtype: DataType) -> bool:
    """Return whether floats of a type surely hold integers as they are."""
    return reach is not None and dtype in EXACT and max(-reach[0], reach[1]) <= EXACT[dtype]


def _sum(a: Reach, b: Reach) -> Reach:
    return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])


def _difference(a: Reach, b: Reach) -> Reach:
    return None if a is None or b is None else (a[0] - b[1], a[1] - b[0])


def _both(a: Reach, b: Reach) -> Reach:
    if a is not None and b is not None and a[0] == a[1] and b[0] == b[1]:
        return a[0] & b[0], a[0] & b[0]
    most = [each[1] for each in (a, b) if each is not None and each[0] >= 0]
    return (0, min(most)) if most else None


def _either(a: Reach, b: Reach) -> Reach:
    if a is not None and b is not None and a[0] == a[1] and b[0] == b[1]:
        return a[0] | b[0], a[0] | b[0]
    return None


def _shifted(a: Reach, b: Reach) -> Reach:
    return (a[0] >> b[0], a[1] >> b[0]) if a is not None and b is not None and 0 <= b[0] == b[1] < 8 else None


_RULES: Mapping[str, Callable[[Reach, Reach], Reach]] = {
    "add": _sum,
    "sub": _difference,
    "and": _both,
    "or": _either,
    "ashr": _shifted,
    "lshr": _shifted,
}


def reach_of(instruction: str, a: Reach, b: Reach, dtype: DataType) -> Reach:
    """Return what an instruction on integers of a type gives, where that is known."""
    rule = _RULES.get(instruction) if a is not None or b is not None else None
    return None if rule is None else within(rule(a, b), dtype)
