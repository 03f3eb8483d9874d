"""Overlap: whether arguments share memory, found out in bounded time.

With arbitrary strides the question is as hard as packing a knapsack. Whatever slicing and transposing can make is
answered exactly; what takes too long to decide counts as shared.
"""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.call.argument import Argument

EFFORT: Any = 10_000  # NumPy's stubs know only its two special values
"""How many candidates are looked at for a common element: milliseconds."""


def share_memory(a: Argument, b: Argument) -> bool:
    """Return whether two arguments have bytes in common, or may have."""
    if a.device != b.device or not may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a.array, b.array, max_work=EFFORT)  # addresses alone: no element is looked at
    except np.exceptions.TooHardError:
        return True


def may_share_memory(a: Argument, b: Argument) -> bool:
    """Return whether one begins before the other ends."""
    (low, high), (other_low, other_high) = a.reach, b.reach
    return low < other_high and other_low < high
