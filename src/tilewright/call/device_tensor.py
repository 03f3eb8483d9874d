"""Device tensors: memory that somebody has allocated for programs, by its address, shape and element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any
from weakref import WeakSet

from tilewright.arrays import np
from tilewright.call.argument import CPU, Argument
from tilewright.core.region import Array
from tilewright.dtypes import TORCH_PACKED, DataType, from_numpy, from_torch
from tilewright.imported import imported

ALIGNMENT = 64
"""Where allocations begin: at a multiple of this many bytes, as torch's do."""


class Buffer:
    """Memory of this process, zeroed, until it is freed."""

    def __init__(self, nbytes: int) -> None:
        room: Any = np.zeros(nbytes + ALIGNMENT, np.uint8)
        start = -room.__array_interface__["data"][0] % ALIGNMENT
        self._data: Array | None = room[start : start + nbytes]
        self.nbytes = nbytes
        self.address: int = room.__array_interface__["data"][0] + start
        _BUFFERS.add(self)

    @property
    def is_live(self) -> bool:
        """Whether it has not been freed."""
        return self._data is not None

    def free(self) -> None:
        """Give the memory back; calls that run on it are not waited for."""
        self._data = None
        _BUFFERS.discard(self)


_BUFFERS: WeakSet[Buffer] = WeakSet()
"""The memory that was allocated here and not freed."""


def _around(address: int) -> Buffer | None:
    return next((b for b in [*_BUFFERS] if b.address <= address < b.address + b.nbytes), None)


@dataclass(frozen=True)
class DeviceTensor:
    """A dense tensor in memory that its maker keeps: programs read and write it in place, and nobody copies it.

    It is an argument of compiled programs, not of `@pl.jit` kernels. `buffer` is whatever keeps the memory; where that
    is memory of a worker's, it is found by the address, and has to hold all of the tensor. Other addresses are trusted.
    """

    data_ptr: int
    shape: Sequence[int]
    dtype: Any
    """As torch, NumPy or the language call it."""
    buffer: object = field(default=None, compare=False, repr=False, kw_only=True)
    _memory: Buffer | None = field(default=None, init=False, compare=False, repr=False)
    """What it lies in, where that was allocated here."""

    def __post_init__(self) -> None:
        shape = checked_shape(self.shape)
        if not self.data_ptr:
            raise ValueError("a DeviceTensor lies in memory, got the address 0")
        element_type(self.dtype)
        object.__setattr__(self, "shape", shape)
        around = self.buffer if isinstance(self.buffer, Buffer) else _around(self.data_ptr)
        if around is not None:
            if self.data_ptr + self.nbytes > around.address + around.nbytes:
                room = around.address + around.nbytes - self.data_ptr
                raise ValueError(f"a tensor of {self.nbytes} bytes does not fit the {room} allocated at this address")
            object.__setattr__(self, "_memory", around)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return bytes_of(self.shape, self.dtype)

    @property
    def is_live(self) -> bool:
        """Whether its memory has not been freed, as far as can be told."""
        return self._memory is None or self._memory.is_live

    def argument(self) -> Argument:
        """Return it as programs take it."""
        dtype = element_type(self.dtype)
        shape, size = tuple(self.shape), dtype.get_byte()
        strides = tuple(size * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        return Argument(self.data_ptr, shape, strides, dtype, CPU, self)


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the extents of a device tensor; ValueError where one of them leaves it empty."""
    extents = tuple(map(index, shape))
    if any(extent <= 0 for extent in extents):
        raise ValueError(f"a DeviceTensor has extents above 0, got {list(extents)}")
    return extents


def bytes_of(shape: Sequence[int], dtype: Any) -> int:
    """Return how many bytes a dense tensor takes."""
    return math.prod(shape) * element_type(dtype).get_byte()


def is_torch_dtype(dtype: object) -> bool:
    """Return whether an element type is called as torch does."""
    torch = imported("torch")
    return torch is not None and isinstance(dtype, torch.dtype)


def element_type(dtype: Any) -> DataType:
    """Return an element type of torch, NumPy or the language as the language's; TypeError for one it has not."""
    if isinstance(dtype, DataType):
        return dtype
    if not is_torch_dtype(dtype):
        return from_numpy(np.dtype(dtype))
    found = from_torch(dtype)
    if found in TORCH_PACKED.values():
        raise TypeError(f"{dtype} packs two elements into a byte: name the language's {found}, which takes one each")
    return found
