"""Packed tensors: torch's, whose bytes hold two 4-bit elements each, taken apart for a run and put together after.

A program's elements are a byte each, as NumPy's are. A tensor of shape [M, N] packs one of [M, 2 * N].
"""

from __future__ import annotations

import sys
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.dtypes import TORCH_PACKED


def is_packed(value: object) -> bool:
    """Return whether an argument is a packed tensor of torch."""
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(value, torch.Tensor)
    return is_tensor and str(getattr(value, "dtype", "")).removeprefix("torch.") in TORCH_PACKED


def unpacked(value: Any) -> Array:
    """Return the elements of a packed tensor, a byte each."""
    torch: Any = sys.modules["torch"]
    data: Any = value.detach().view(torch.uint8).numpy()
    halves: Any = np.stack([data & 15, data >> 4], axis=-1)
    dtype = TORCH_PACKED[str(value.dtype).removeprefix("torch.")]
    return halves.reshape(*data.shape[:-1], -1).view(dtype.numpy)


def pack(data: Array, value: Any) -> None:
    """Write elements into a packed tensor."""
    torch: Any = sys.modules["torch"]
    dense: Any = np.ascontiguousarray(data)
    halves = dense.view(np.uint8)
    value.detach().view(torch.uint8).numpy()[...] = halves[..., ::2] & 15 | halves[..., 1::2] << 4
