"""Frameworks: torch tensors, NumPy arrays, DLPack producers and device tensors as arguments, and arrays like theirs."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from tilewright.arrays import np
from tilewright.call.argument import CPU, Argument, is_array
from tilewright.call.device_tensor import DeviceTensor
from tilewright.call.devices import device_objection
from tilewright.call.dlpack import HOST, Held, handed_over
from tilewright.call.packed import is_packed, pack
from tilewright.call.producers import PRODUCERS, is_produced
from tilewright.call.torch_state import INSTEAD, address_of, holds_its_elements, memory_objection
from tilewright.core.region import Array
from tilewright.dtypes import TORCH_PACKED, DataType, from_numpy, from_torch, to_torch
from tilewright.imported import imported


class Framework(Protocol):
    """How one framework's arrays are looked at and made."""

    def objection(self, value: Any) -> str:
        """Return why the memory of an array cannot be looked at, or nothing."""
        ...

    def argument(self, value: Any) -> Argument:
        """Return where an array lies; TypeError for an element type that the language has not."""
        ...

    def write_objection(self, argument: Argument) -> str:
        """Return why an array that can be read must not be written, or nothing."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: DataType, device: str = CPU) -> Any:
        """Return a new zero-filled array in the memory of a device."""
        ...

    def packed(self, argument: Argument) -> Argument:
        """Return a copy of an array whose elements lie one after the other, in the memory of the same device."""
        ...

    def copy(self, source: Argument, target: Argument) -> None:
        """Write what one array of a device holds into another."""
        ...

    def wrap(self, data: Array) -> Any:
        """Return data that a program made as the framework's own kind of array."""
        ...


class NumpyArrays:
    """NumPy arrays, and anything that hands its memory over by DLPack."""

    def objection(self, value: Any) -> str:
        """Return what an array's elements are besides their bytes, or where else they lie."""
        if not is_array(value):
            kind, number = value.__dlpack_device__()
            return "" if int(kind) in HOST else f"is on {_device(value, int(kind), number)}: {_COPY}"
        masked = sys.modules.get("numpy.ma")  # where nobody has imported it there are none
        if masked is not None and isinstance(value, masked.MaskedArray):
            return "is a masked array: pass what its mask should stand for, as `x.filled(...)` gives it"
        return "" if value.dtype.isnative else 'is in another byte order: pass `x.astype(x.dtype.newbyteorder("="))`'

    def argument(self, value: Any) -> Argument:
        """Return an array itself, or what another producer hands over."""
        return Argument.of_array(np.asarray(value)) if is_array(value) else handed_over(value)

    def write_objection(self, argument: Argument) -> str:
        """Return whether an array is read-only, or may be: producers that say so are as young as DLPack 1.0."""
        if isinstance(argument.owner, Held):
            sealed = "is written, but its producer hands it over read-only"
            unsure = "is written, but its producer does not say that it may be: pass `torch.from_dlpack(x)`"
            return sealed if argument.owner.is_sealed else "" if argument.owner.is_versioned else unsure
        return "" if argument.array.flags.writeable else "is written, but the array given is read-only"

    def zeros(self, shape: tuple[int, ...], dtype: DataType, device: str = CPU) -> Array:
        """Return a new zero-filled array; NumPy's are all of the host."""
        return np.zeros(shape, dtype.numpy)

    def packed(self, argument: Argument) -> Argument:
        """Return a copy in the order of the axes."""
        return Argument.of_array(np.array(argument.array, order="C"))

    def copy(self, source: Argument, target: Argument) -> None:
        """Write one array into another."""
        target.array[...] = source.array

    def wrap(self, data: Array) -> Array:
        """Return the data as it is."""
        return data


class TorchTensors:
    """Tensors of torch."""

    def objection(self, value: Any) -> str:
        """Return what a tensor is besides strided memory that some back end takes."""
        if objection := device_objection(str(value.device)):
            return objection
        if value.is_nested:
            return "is a nested tensor, which has no shape: pass its parts, as `x.unbind()` gives them"
        if value.layout is not sys.modules["torch"].strided:
            return f"is a {str(value.layout).removeprefix('torch.')} tensor: pass `x.to_dense()`"
        if value.is_conj() or value.is_neg():
            return "is a view that torch negates as it reads: pass `x.resolve_conj().resolve_neg()`"
        if value._is_zerotensor():
            return "is zeros that torch has made no memory for: pass `x.clone()`"
        if objection := memory_objection(value):
            return objection
        return "" if holds_its_elements(value) else "has no memory: its storage was freed or shrunk"

    def argument(self, value: Any) -> Argument:
        """Return where a tensor lies; torch is not told that anybody looks."""
        dtype = from_torch(value.dtype)
        if dtype in TORCH_PACKED.values():
            raise TypeError(f"a tensor of {value.dtype} packs two elements into a byte: only compiled programs take it")
        strides = tuple(value.element_size() * step for step in value.stride())
        return Argument(address_of(value), tuple(value.shape), strides, dtype, str(value.device), value)

    def write_objection(self, argument: Argument) -> str:
        """Return nothing: a tensor whose memory can be read can be written."""
        return ""

    def zeros(self, shape: tuple[int, ...], dtype: DataType, device: str = CPU) -> Any:
        """Return a new zero-filled tensor of a device; ValueError for an odd number of elements, two of them a byte."""
        chosen = to_torch(dtype)
        if dtype in TORCH_PACKED.values():
            if not shape or shape[-1] % 2:
                raise ValueError(f"torch packs two elements of {dtype} into a byte, which {list(shape)} does not allow")
            torch: Any = sys.modules["torch"]  # which fills no packed tensors, not even those without elements
            return torch.zeros((*shape[:-1], shape[-1] // 2), dtype=torch.uint8).view(chosen)
        return sys.modules["torch"].zeros(shape, dtype=chosen, device=device)

    def packed(self, argument: Argument) -> Argument:
        """Return a copy in the order of the axes; torch copies what is on a device there."""
        if argument.device == CPU:
            return NUMPY.packed(argument)
        return self.argument(argument.owner.contiguous())

    def copy(self, source: Argument, target: Argument) -> None:
        """Write one tensor into another."""
        if target.device == CPU:
            NUMPY.copy(source, target)
        else:
            target.owner.copy_(source.owner)

    def wrap(self, data: Array) -> Any:
        """Return the data as a tensor of its own."""
        result = self.zeros(data.shape, from_numpy(data.dtype))
        if is_packed(result):
            pack(data, result)
        else:
            self.argument(result).array[...] = data
        return result


class DeviceTensors:
    """Memory that a worker has allocated; new arrays are torch's where torch is loaded, and NumPy's otherwise."""

    def objection(self, value: DeviceTensor) -> str:
        """Return whether its memory is gone."""
        return "" if value.is_live else "is a DeviceTensor whose memory was freed"

    def argument(self, value: DeviceTensor) -> Argument:
        """Return where a device tensor lies."""
        return value.argument()

    def write_objection(self, argument: Argument) -> str:
        """Return nothing: memory that was allocated for programs can be written."""
        return ""

    def zeros(self, shape: tuple[int, ...], dtype: DataType, device: str = CPU) -> Any:
        """Return a new zero-filled array of the host's."""
        return self._host().zeros(shape, dtype)

    def packed(self, argument: Argument) -> Argument:
        """Return a copy in the order of the axes."""
        return NUMPY.packed(argument)

    def copy(self, source: Argument, target: Argument) -> None:
        """Write one array into another."""
        NUMPY.copy(source, target)

    def wrap(self, data: Array) -> Any:
        """Return the data as an array of the host's."""
        return self._host().wrap(data)

    def _host(self) -> Framework:
        return TORCH if imported("torch") is not None else NUMPY


NUMPY, TORCH, DEVICE = NumpyArrays(), TorchTensors(), DeviceTensors()


def framework_of(value: object) -> Framework | None:
    """Return whose array a value is, or None when it is none."""
    torch = imported("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return TORCH
    if is_array(value):
        return NUMPY
    proxies: Any = imported("torch.fx.proxy")  # which have every attribute they are asked for
    if proxies is not None and isinstance(value, proxies.Proxy):
        raise ValueError(f"torch.fx traces this call with the proxy `{value}`, and cannot look into it: {INSTEAD}")
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return PRODUCERS if is_produced(value) else NUMPY
    return DEVICE if isinstance(value, DeviceTensor) else None


def is_tensor(value: object) -> bool:
    """Return whether a value is somebody's array."""
    return framework_of(value) is not None


def argument_of(value: object, name: str) -> Argument:
    """Return an array as an argument; TypeError or ValueError naming the parameter when it cannot be one."""
    framework = framework_of(value)
    if framework is None:
        raise TypeError(
            f"`{name}` is a tensor: pass a torch tensor, a NumPy array or a DeviceTensor, got {type(value).__name__}"
        )
    check_readable(framework, value, name)
    try:
        return framework.argument(value)
    except TypeError as error:
        raise TypeError(f"`{name}`: {error}") from None
    except (RuntimeError, BufferError, ValueError) as error:  # what frameworks say of arrays that only look like memory
        raise ValueError(f"`{name}` cannot be read as memory: {error}") from error


def check_readable(framework: Framework, value: object, name: str) -> None:
    """Raise ValueError, naming the parameter, where the memory of an array cannot be looked at."""
    if objection := framework.objection(value):
        raise ValueError(f"`{name}` {objection}")


def array_of(value: Any) -> Array:
    """Return an array's memory as NumPy sees it."""
    framework = framework_of(value)
    if framework in (TORCH, DEVICE):
        return framework.argument(value).array
    return np.asarray(value) if framework is None or is_array(value) else framework.argument(value).array


_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
_COPY = "programs run on memory of the host, so pass a copy there, such as CuPy's `x.get()` or jax.device_get(x)"


def _device(value: Any, kind: int, number: Any) -> str:
    """Return what a DLPack producer calls the device that its memory is of, or what DLPack does."""
    named = getattr(value, "device", None)
    return f"device {named}" if named is not None else f"{_DEVICES.get(kind, f'DLPack kind {kind},')} device {number}"
