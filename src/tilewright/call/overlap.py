"""Overlap: whether arrays share memory, found out in bounded time.

With arbitrary strides the question is as hard as packing a knapsack. Whatever slicing and transposing can make is
answered exactly; what takes too long to decide counts as shared.
"""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array

EFFORT: Any = 10_000  # NumPy's stubs know only its two special values
"""How many candidates are looked at for a common element: milliseconds."""


def share_memory(a: Array, b: Array) -> bool:
    """Return whether two arrays have bytes in common, or may have."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=EFFORT)
    except np.exceptions.TooHardError:
        return True
