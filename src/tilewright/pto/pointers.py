"""Pointers: arrays, tensors and addresses as the words of a launch."""

from __future__ import annotations

import ctypes
import operator
import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.arrays import np
from tilewright.call.buffers import Buffer, buffer_of
from tilewright.dtypes import TORCH_NAMES, from_numpy, from_torch
from tilewright.errors import PtoArgumentError, PtoValueError
from tilewright.pto.declared import Declared
from tilewright.pto.groups import END, UNKNOWN
from tilewright.pto.signature import Parameter
from tilewright.pto.types import Ptr

Words: TypeAlias = tuple[int, ...]

_byte_of: Any = ctypes.c_char.from_buffer
_address_of = ctypes.addressof
_type: Any = type
_modules = sys.modules


@dataclass(frozen=True, slots=True)
class _TorchNames:
    """What the tensors of one pointer parameter are told by."""

    tensor: Any
    dtype: Any
    strided: Any

    @staticmethod
    def of(torch: Any, dtype: Any) -> _TorchNames:
        """Return torch's names for tensors whose elements NumPy has as `dtype`; ABSENT while torch is not there."""
        if not hasattr(torch, "strided") or not hasattr(torch, "Tensor"):
            return ABSENT
        named = (name for name, known in TORCH_NAMES.items() if known.numpy == dtype)
        return _TorchNames(torch.Tensor, getattr(torch, next(named, ""), None), torch.strided)


ABSENT = _TorchNames(None, None, None)


class PointerTaker:
    """Takes the arguments of one pointer parameter: each is an address and how many elements lie there.

    Arrays are C-contiguous, writable and of the pointer's element type. What the first lines of a call let through is
    exactly what `_array` would: they only ask in fewer steps.
    """

    __slots__ = ("_declared", "_dtype", "_element", "_itemsize", "_name", "_ndarray", "_torch")

    def __init__(self, declared: Declared, parameter: Parameter) -> None:
        assert isinstance(parameter.annotation, Ptr)
        self._declared = declared
        self._name = parameter.name
        self._element = parameter.annotation.element
        self._itemsize = self._element.nbytes
        self._ndarray = np.ndarray
        self._dtype = self._element.dtype.numpy
        self._torch = ABSENT

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._itemsize

    def __call__(self, value: Any) -> Words:
        """Return the address and the number of elements; TypeError or ValueError naming the parameter otherwise."""
        kind = _type(value)
        if kind is self._ndarray:
            if value.dtype is self._dtype:
                try:
                    return _address_of(_byte_of(value)), value.size  # refuses read-only and non-contiguous arrays
                except (TypeError, ValueError, BufferError):
                    pass
        elif kind is int:
            return self._address(value)
        elif kind is self._torch.tensor:
            if (
                value.dtype is self._torch.dtype
                and value.is_cpu
                and value.layout is self._torch.strided
                and value.is_contiguous()
                and not value.requires_grad
                and not value.is_neg()
                and (size := value.nbytes)
                and value.storage_offset() * self._itemsize + size <= len(value.untyped_storage())
                and (address := value.data_ptr())  # functional tensors have none
            ):
                return address, size // self._itemsize
        elif self._torch is ABSENT:
            self._torch = _TorchNames.of(_modules.get("torch"), self._dtype)
        return self._any(value)

    def _any(self, value: Any) -> Words:
        buffer = buffer_of(value)
        if buffer is not None:
            return self._array(buffer, value)
        if isinstance(value, ctypes.c_void_p):
            return self._address(value.value or 0)
        if callable(getattr(value, "data_ptr", None)):
            value = value.data_ptr()
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            message = (
                f"parameter `{self._name}` is a pointer to {self._element}: pass a torch tensor, a NumPy array, "
                f"a ctypes.c_void_p or an address, got {type(value).__name__}"
            )
            raise self._declared.refusal(PtoArgumentError, message, self._name)
        return self._address(operator.index(value))

    def _address(self, address: int) -> Words:
        if not 0 < address < END:
            shown = "a null pointer" if address == 0 else f"{address:#x}, which is no address of this process"
            raise self._value_error(f"is {shown}")
        return address, UNKNOWN

    def _array(self, buffer: Buffer, value: Any) -> Words:
        objection = buffer.objection(value) or buffer.gradient_objection(value)
        if objection:
            raise self._value_error(objection)
        given = _dtype_of(value)
        if given != str(self._element.dtype):
            message = f"parameter `{self._name}` points to {self._element} elements, got an array of {given}"
            help = f"pass an array of {self._element.dtype}, or the address of this one"
            raise self._declared.refusal(PtoArgumentError, message, self._name, help)
        try:
            data: Any = buffer.view(value)
        except (RuntimeError, BufferError, TypeError) as error:  # what frameworks say of arrays that are no memory
            raise self._value_error(f"cannot be read as memory: {error}") from error
        if not data.flags.c_contiguous:
            help = "pass a contiguous copy, or its address where the kernel knows its strides"
            raise self._value_error("is an array with gaps or another order than its axes", help)
        problem = buffer.write_objection(value)
        if problem:
            raise self._value_error(problem.replace("is written, but", "may be written, but", 1))
        return int(data.ctypes.data), int(data.size)

    def _value_error(self, problem: str, help: str = "") -> PtoValueError:
        return self._declared.refusal(PtoValueError, f"parameter `{self._name}` {problem}", self._name, help)


def _dtype_of(value: Any) -> str:
    """Return the name of an array's element type in the language, or in its framework where it has none there."""
    try:
        torch = _modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return str(from_torch(value.dtype))
        return str(from_numpy(value.dtype))
    except (TypeError, AttributeError):
        return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
