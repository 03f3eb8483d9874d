"""Shadows: a number beside each byte of the memory that tensors lie in."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array


class Shadow:
    """Rows of numbers beside the bytes from one address to another; all begin as 0."""

    def __init__(self, low: int, high: int, rows: int) -> None:
        self.low = low
        self.high = high
        self.numbers: Array = np.zeros((rows, high - low), np.int32)
        self.owner: object = None
        """Ends the shadow with the memory, whose addresses may then belong to something else."""

    def beside(self, row: int, elements: Array) -> Array:
        """Return the numbers beside the bytes of elements, to be read and written: the bytes are one more axis."""
        numbers = self.numbers[row, elements.ctypes.data - self.low :]
        strides = [stride * numbers.itemsize for stride in (*elements.strides, 1)]
        view: Any = np.lib.stride_tricks.as_strided(numbers, (*elements.shape, elements.itemsize), strides)
        return view

    def take_over(self, other: Shadow) -> None:
        """Hold what a shadow inside this one holds."""
        self.numbers[:, other.low - self.low : other.high - self.low] = other.numbers


class Shadows:
    """The shadows of all memory that was asked for: arrays that share memory share their shadow."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.by_start: dict[int, Shadow] = {}

    def beside(self, elements: Array) -> Shadow:
        """Return the shadow of the memory that elements lie in."""
        owner = _owner(elements)
        low, high = reach(owner)
        known = self.by_start.get(low)
        return known if known is not None and high <= known.high else self._made(owner, low, high)

    def clear(self) -> None:
        """Let every number be 0."""
        self.by_start.clear()

    def _made(self, owner: Array, low: int, high: int) -> Shadow:
        met = [s for s in self.by_start.values() if s.low < high and low < s.high]
        if any(s.low <= low and high <= s.high for s in met):
            return next(s for s in met if s.low <= low and high <= s.high)
        made = Shadow(min([low, *(s.low for s in met)]), max([high, *(s.high for s in met)]), self.rows)
        for smaller in met:
            made.take_over(smaller)
            del self.by_start[smaller.low]
        self.by_start[made.low] = made
        if owner.flags.owndata:
            made.owner = weakref.ref(owner, lambda _: self.by_start.pop(low, None))
        return made


def _owner(array: Array) -> Array:
    """Return the array whose memory a view is part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def reach(array: Array) -> tuple[int, int]:
    """Return the first address of an array's elements, and the one after the last."""
    at: int = array.ctypes.data
    steps: Sequence[int] = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    return at + sum(min(step, 0) for step in steps), at + sum(max(step, 0) for step in steps) + array.itemsize
