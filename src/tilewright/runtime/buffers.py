"""Buffers: torch tensors and NumPy arrays as regions, sharing their memory."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from tilewright.arrays import np
from tilewright.core.region import Array, Region, whole
from tilewright.dtypes import STORABLE, TORCH_NAMES, DataType, from_numpy


class Buffer(Protocol):
    """How one framework's arrays are looked at and made."""

    def dtype(self, value: Any) -> DataType:
        """Return the element type; TypeError for one the language does not have."""
        ...

    def view(self, value: Any) -> Array:
        """Return a NumPy view of the same memory."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: DataType) -> Any:
        """Return a new zero-filled array."""
        ...

    def wrap(self, data: Array) -> Any:
        """Return data the program made as the framework's own kind of array."""
        ...


class NumpyBuffer:
    """NumPy arrays, and anything that hands its memory over by DLPack."""

    def dtype(self, value: Any) -> DataType:
        """Return the element type of an array."""
        return from_numpy(self.view(value).dtype)

    def view(self, value: Any) -> Array:
        """Return the array itself, or a view of another producer's memory."""
        return np.asarray(value) if hasattr(value, "__array_interface__") else np.from_dlpack(value)

    def zeros(self, shape: tuple[int, ...], dtype: DataType) -> Array:
        """Return a new zero-filled array."""
        return np.zeros(shape, dtype.numpy)

    def wrap(self, data: Array) -> Array:
        """Return the data as it is."""
        return data


class TorchBuffer:
    """CPU tensors of torch."""

    def __init__(self) -> None:
        self.torch: Any = sys.modules["torch"]

    def dtype(self, value: Any) -> DataType:
        """Return the element type of a tensor."""
        name = str(value.dtype).removeprefix("torch.")
        if name not in TORCH_NAMES:
            raise TypeError(f"Unsupported torch dtype {value.dtype}; supported: {', '.join(TORCH_NAMES)}")
        return TORCH_NAMES[name]

    def view(self, value: Any) -> Array:
        """Return a NumPy view of a CPU tensor; types NumPy lacks travel as bytes of the same width."""
        if value.device.type != "cpu":
            raise ValueError(f"this program runs on CPU tensors, got one on {value.device}")
        dtype = self.dtype(value)
        plain = value.detach()
        if dtype.numpy_name in _NUMPY_NATIVE:
            return plain.numpy()
        carrier = {1: self.torch.uint8, 2: self.torch.int16}[dtype.get_byte()]
        return plain.view(carrier).numpy().view(dtype.numpy)

    def zeros(self, shape: tuple[int, ...], dtype: DataType) -> Any:
        """Return a new zero-filled tensor."""
        return self.torch.zeros(shape, dtype=self._torch_dtype(dtype))

    def wrap(self, data: Array) -> Any:
        """Return the data as a tensor of its own."""
        result = self.zeros(data.shape, from_numpy(data.dtype))
        self.view(result)[...] = data
        return result

    def _torch_dtype(self, dtype: DataType) -> Any:
        return getattr(self.torch, next(name for name, known in TORCH_NAMES.items() if known == dtype))


_NUMPY_NATIVE = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32".split())


def buffer_of(value: object) -> Buffer | None:
    """Return how to look at an array, or None when the value is no array."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return TorchBuffer()
    if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
        return NumpyBuffer()
    return None


def region_of(value: object, name: str) -> Region:
    """Return an array argument as a region; TypeError naming the parameter when it is no array."""
    buffer = buffer_of(value)
    if buffer is None:
        raise TypeError(f"`{name}` is a tensor: pass a torch tensor or a NumPy array, got {type(value).__name__}")
    if buffer.dtype(value) not in STORABLE:
        raise TypeError(f"`{name}` has an element type no tensor can have: {buffer.dtype(value)}")
    return whole(buffer.view(value))
