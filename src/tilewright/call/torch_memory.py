"""Torch memory: a tensor's elements as a NumPy array that torch knows nothing of.

`Tensor.numpy` marks the memory as one that may never be resized again, for good, since somebody else may look at it. An
array that lives no longer than a call is no reason for that.
"""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array


class _Memory:
    """A tensor by NumPy's protocol for foreign memory; the arrays that are made of it keep it."""

    def __init__(self, tensor: Any, size: int) -> None:
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(tensor.shape),
            "strides": tuple(size * step for step in tensor.stride()),
            "typestr": f"<u{size}",
            "data": (tensor.data_ptr(), False),
        }


def view_of(tensor: Any, dtype: Any) -> Array:
    """Return the elements of a strided CPU tensor as those of a NumPy type that is as wide, in the same memory."""
    if tensor.numel() == 0:
        return np.zeros(tuple(tensor.shape), dtype)
    data: Any = np.asarray(_Memory(tensor, dtype.itemsize))
    return data.view(dtype)
