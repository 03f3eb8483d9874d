"""Packed tensors: torch's, whose bytes hold two 4-bit elements each, taken apart for a run and put together after.

A program's elements are a byte each, as NumPy's are. A tensor of shape [M, N] packs one of [M, 2 * N].
"""

from __future__ import annotations

import sys
from functools import cache
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.call.argument import CPU, Argument
from tilewright.core.region import Array
from tilewright.dtypes import TORCH_PACKED, UINT8
from tilewright.imported import imported


def is_packed(value: Any) -> bool:
    """Return whether an argument is a packed tensor of torch."""
    torch: Any = imported("torch")
    return torch is not None and isinstance(value, torch.Tensor) and value.dtype in _packed_dtypes()


@cache
def _packed_dtypes() -> frozenset[Any]:
    torch: Any = sys.modules["torch"]
    return frozenset(getattr(torch, name) for name in TORCH_PACKED if hasattr(torch, name))


def unpacked(value: Any) -> Array:
    """Return the elements of a packed tensor, a byte each."""
    data = memory(value).array
    halves: Any = np.stack([data & 15, data >> 4], axis=-1)
    dtype = TORCH_PACKED[str(value.dtype).removeprefix("torch.")]
    return halves.reshape(*data.shape[:-1], 2 * prod(data.shape[-1:])).view(dtype.numpy)


def pack(data: Array, value: Any) -> None:
    """Write elements into a packed tensor."""
    dense: Any = np.ascontiguousarray(data)
    halves = dense.view(np.uint8)
    memory(value).array[...] = halves[..., ::2] & 15 | halves[..., 1::2] << 4


def memory(value: Any) -> Argument:
    """Return where the bytes of a packed tensor lie."""
    return Argument(value.data_ptr(), tuple(value.shape), value.stride(), UINT8, CPU, value)
