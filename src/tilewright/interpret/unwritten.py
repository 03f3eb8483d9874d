"""Unwritten outputs: which elements of what a call allocated nobody has written yet.

They hold zeros, which is what programs read there. Whoever looks at them while the kernel runs is to see that nobody
put them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access
from tilewright.core.region import Array


class Unwritten:
    """Hears of writes to some arrays, whose elements lie one after the other."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.parts = [(int(array.ctypes.data), np.ones(array.nbytes, bool)) for array in arrays]

    def touched(self, access: Access, elements: Array) -> None:
        """Take note of a write."""
        mask = None if access is Access.READ or not elements.size else self.beside(elements)
        if mask is not None:
            mask[...] = False

    def beside(self, elements: Array) -> Any:
        """Return which elements nobody wrote, to be changed, None for those of other arrays."""
        at = int(elements.ctypes.data)
        for low, mask in self.parts:
            if low <= at < low + mask.size:
                return np.lib.stride_tricks.as_strided(mask[at - low :], elements.shape, elements.strides)
        return None
