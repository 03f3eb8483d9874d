"""Arguments: a caller's tensor once its framework is gone, where it lies and what its elements are."""

from __future__ import annotations

from typing import Any, TypeGuard

from tilewright.arrays import np
from tilewright.backends.abi import MOST_STEP, tensor_words
from tilewright.core.region import Array
from tilewright.dtypes import DataType, from_numpy

CPU = "cpu"


class Argument:
    """Memory that a program reads or writes; `owner` keeps it, and strides count bytes."""

    __slots__ = ("address", "device", "dtype", "owner", "shape", "strides")

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DataType, device: str, owner: Any
    ) -> None:
        self.address = address
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.owner = owner

    @staticmethod
    def of_array(data: Array) -> Argument:
        """Return a NumPy array as an argument; TypeError for an element type that the language has not."""
        address: int = data.__array_interface__["data"][0]
        return Argument(address, data.shape, data.strides, from_numpy(data.dtype), CPU, data)

    @property
    def reach(self) -> tuple[int, int]:
        """The first byte of all elements, and the byte after the last; the same where there is none."""
        low = high = self.address
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent == 0:
                return self.address, self.address
            low += (extent - 1) * min(stride, 0)
            high += (extent - 1) * max(stride, 0)
        return low, high + self.dtype.get_byte()

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other in the order of the axes."""
        wanted = self.dtype.get_byte()
        for extent, stride in zip(self.shape[::-1], self.strides[::-1], strict=True):
            if extent > 1 and stride != wanted:
                return 0 in self.shape
            wanted *= extent
        return True

    @property
    def is_addressable(self) -> bool:
        """Whether code can read it: rows of adjacent elements, each at an address that is a multiple of its size."""
        return self.lies_in_steps(1)

    @property
    def is_turned(self) -> bool:
        """Whether code could read it with its last two axes swapped, and not as it is: `w.T`, in memory of the host."""
        if len(self.shape) < 2 or self.device != CPU or min(self.shape[-2:]) < 2 or self.is_addressable:
            return False
        return self.strides[-2] == self.dtype.get_byte() and self.turned().is_addressable

    @property
    def step(self) -> int:
        """How many elements apart neighbours along the last axis lie: 1 where code takes no rows that lie like its."""
        if not self.shape or self.shape[-1] < 2 or self.device != CPU or self.is_turned:
            return 1
        step, rest = divmod(self.strides[-1], self.dtype.get_byte())
        return step if not rest and 1 < step <= MOST_STEP and self.lies_in_steps(step) else 1

    def lies_in_steps(self, step: int) -> bool:
        """Return whether code can read it that takes rows whose neighbours are so many elements apart."""
        size = self.dtype.get_byte()
        if self.shape and self.shape[-1] > 1 and self.strides[-1] != step * size:
            return False
        return not self.address % size and not any(stride % size for stride in self.strides)

    def turned(self) -> Argument:
        """Return the same memory with its last two axes swapped."""
        shape, strides = ((*of[:-2], of[-1], of[-2]) for of in (self.shape, self.strides))
        owner: Any = np.swapaxes(self.owner, -1, -2) if is_array(self.owner) else self.owner
        return Argument(self.address, shape, strides, self.dtype, self.device, owner)

    @property
    def words(self) -> list[int]:
        """Its words, where code can read it."""
        size = self.dtype.get_byte()
        return tensor_words(self.address, self.shape, [stride // size for stride in self.strides])

    @property
    def array(self) -> Array:
        """The same memory as a NumPy array, for the interpreter and for copies."""
        if is_array(self.owner):
            return self.owner
        if 0 in self.shape:
            return np.zeros(self.shape, self.dtype.numpy)
        data: Any = np.asarray(_Memory(self))
        return data.view(self.dtype.numpy)


class _Memory:
    """An argument by NumPy's protocol for foreign memory; the arrays that are made of it keep it.

    `Tensor.numpy` would mark the memory of a tensor as one that may never be resized again, for good, since somebody
    else may look at it. An array that lives no longer than a call is no reason for that.
    """

    def __init__(self, argument: Argument) -> None:
        self.argument = argument
        self.__array_interface__ = {
            "version": 3,
            "shape": argument.shape,
            "strides": argument.strides,
            "typestr": f"<u{argument.dtype.get_byte()}",
            "data": (argument.address, False),
        }


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is an array of NumPy."""
    return isinstance(value, np.ndarray)


EFFORT: Any = 10_000  # NumPy's stubs know only its two special values
"""How many candidates are looked at for a common element: milliseconds."""


def share_memory(a: Argument, b: Argument) -> bool:
    """Return whether two arguments have bytes in common, or may have.

    With arbitrary strides the question is as hard as packing a knapsack. Whatever slicing and transposing can make is
    answered exactly; what takes too long to decide counts as shared.
    """
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
