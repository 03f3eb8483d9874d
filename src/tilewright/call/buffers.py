"""Buffers: torch tensors and NumPy arrays as regions, sharing their memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

from tilewright.arrays import np
from tilewright.call.packed import is_packed, pack
from tilewright.call.torch_memory import view_of
from tilewright.call.torch_state import gradient_objection, memory_objection
from tilewright.core.region import Array, Region, whole
from tilewright.dtypes import TORCH_PACKED, DataType, from_numpy, from_torch, to_torch


class Buffer(Protocol):
    """How one framework's arrays are looked at and made."""

    def objection(self, value: Any) -> str:
        """Return why the memory of an array cannot be looked at, or nothing."""
        ...

    def view(self, value: Any) -> Array:
        """Return a NumPy view of the same memory; TypeError for an element type NumPy cannot be told of."""
        ...

    def gradient_objection(self, value: Any) -> str:
        """Return why derivatives would be lost if a program took an array, or nothing."""
        ...

    def write_objection(self, value: Any) -> str:
        """Return why an array that can be read must not be written, or nothing."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: DataType) -> Any:
        """Return a new zero-filled array."""
        ...

    def wrap(self, data: Array) -> Any:
        """Return data the program made as the framework's own kind of array."""
        ...


class NumpyBuffer:
    """NumPy arrays, and anything that hands its memory over by DLPack."""

    def objection(self, value: Any) -> str:
        """Return what an array's elements are besides their bytes, or where else they lie."""
        if not _is_numpy(value):
            kind, number = value.__dlpack_device__()
            return "" if int(kind) in _HOST else f"is on {_device(value, int(kind), number)}: {_COPY}"
        masked = sys.modules.get("numpy.ma")  # where nobody has imported it there are none
        if masked is not None and isinstance(value, masked.MaskedArray):
            return "is a masked array: pass what its mask should stand for, as `x.filled(...)` gives it"
        return "" if value.dtype.isnative else 'is in another byte order: pass `x.astype(x.dtype.newbyteorder("="))`'

    def view(self, value: Any) -> Array:
        """Return the array itself, or a view of another producer's memory."""
        return np.asarray(value) if _is_numpy(value) else np.from_dlpack(value)

    def gradient_objection(self, value: Any) -> str:
        """Return nothing: nobody follows arrays."""
        return ""

    def write_objection(self, value: Any) -> str:
        """Return whether an array is read-only."""
        return "" if self.view(value).flags.writeable else "is written, but the array given is read-only"

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

    def objection(self, value: Any) -> str:
        """Return what a tensor is besides strided memory of this machine."""
        if value.device.type != "cpu":
            return f"is on {elsewhere(str(value.device))}"
        if value.layout is not self.torch.strided or value.is_nested:
            return f"is a {str(value.layout).removeprefix('torch.')} tensor: pass `x.to_dense()`"
        if value.is_conj() or value.is_neg():
            return "is a view that torch negates as it reads: pass `x.resolve_conj().resolve_neg()`"
        if objection := memory_objection(value):
            return objection
        return "" if self._holds_its_elements(value) else "has no memory: its storage was freed or shrunk"

    def _holds_its_elements(self, value: Any) -> bool:
        if value.numel() == 0:
            return True
        if value.untyped_storage().data_ptr() == 0:
            return False
        reach = sum((extent - 1) * stride for extent, stride in zip(value.shape, value.stride(), strict=True))
        needed = (value.storage_offset() + reach + 1) * value.element_size()
        return needed <= value.untyped_storage().nbytes()

    def view(self, value: Any) -> Array:
        """Return a NumPy view of a tensor."""
        name = str(value.dtype).removeprefix("torch.")
        if name in TORCH_PACKED:
            raise TypeError(f"a tensor of {value.dtype} packs two elements into a byte: only compiled programs take it")
        return view_of(value, from_torch(value.dtype).numpy)

    def gradient_objection(self, value: Any) -> str:
        """Return whether autograd follows a tensor, which would not see what a program does."""
        return gradient_objection(value)

    def write_objection(self, value: Any) -> str:
        """Return nothing: a tensor whose memory can be read can be written."""
        return ""

    def zeros(self, shape: tuple[int, ...], dtype: DataType) -> Any:
        """Return a new zero-filled tensor; ValueError for an odd number of elements of which two make a byte."""
        chosen = to_torch(dtype)
        if dtype in TORCH_PACKED.values():
            if not shape or shape[-1] % 2:
                raise ValueError(f"torch packs two elements of {dtype} into a byte, which {list(shape)} does not allow")
            shape = (*shape[:-1], shape[-1] // 2)
        return self.torch.zeros(shape, dtype=chosen)

    def wrap(self, data: Array) -> Any:
        """Return the data as a tensor of its own."""
        result = self.zeros(data.shape, from_numpy(data.dtype))
        if is_packed(result):
            pack(data, result)
        else:
            self.view(result)[...] = data
        return result


_HOST = (1, 3, 13)  # DLPack's numbers for plain, pinned and managed memory of the host
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
_COPY = "programs run on memory of the host, so pass a copy there, such as CuPy's `x.get()` or jax.device_get(x)"


def _device(value: Any, kind: int, number: Any) -> str:
    """Return what a DLPack producer calls the device that its memory is of, or what DLPack does."""
    named = getattr(value, "device", None)
    return f"device {named}" if named is not None else f"{_DEVICES.get(kind, f'DLPack kind {kind},')} device {number}"


def elsewhere(device: str) -> str:
    """Return where a torch tensor is that no program can look at, and what to pass instead."""
    if device.partition(":")[0] == "meta":
        return (
            "device meta, where tensors have no elements: pass one with data, such as torch.zeros_like(x, device='cpu')"
        )
    return f"device {device}, and programs run on CPU tensors: pass `x.cpu()`"


def _is_numpy(value: object) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)


def buffer_of(value: object) -> Buffer | None:
    """Return how to look at an array, or None when the value is no array."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return TorchBuffer()
    if _is_numpy(value) or (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")):
        return NumpyBuffer()
    return None


def region_of(value: object, name: str, view: Callable[[Any], Array] | None = None) -> Region:
    """Return an array argument as a region; TypeError or ValueError naming the parameter when it cannot be one.

    `view` looks at the array in another way than its framework's own.
    """
    buffer = buffer_of(value)
    if buffer is None:
        raise TypeError(f"`{name}` is a tensor: pass a torch tensor or a NumPy array, got {type(value).__name__}")
    objection = buffer.objection(value)
    if objection:
        raise ValueError(f"`{name}` {objection}")
    try:
        return whole((view or buffer.view)(value))
    except TypeError as error:
        raise TypeError(f"`{name}`: {error}") from None
    except (RuntimeError, BufferError) as error:  # what frameworks say of arrays that only look like memory
        raise ValueError(f"`{name}` cannot be read as memory: {error}") from error
