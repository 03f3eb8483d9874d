"""Pointers: arrays, tensors and addresses as the words of a launch."""

from __future__ import annotations

import ctypes
import operator
import sys
from math import prod
from typing import Any, TypeAlias

from tilewright.call.frameworks import TORCH, Framework, framework_of
from tilewright.call.torch_state import gradient_objection, memory_objection
from tilewright.dtypes import BY_NAME, INDEX, SIGNED, DataType, from_numpy, from_torch
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoArgumentError, PtoValueError
from tilewright.pto.groups import END, UNKNOWN
from tilewright.pto.signature import Parameter
from tilewright.pto.types import Ptr

Words: TypeAlias = tuple[int, ...]

_type: Any = type

OPERATOR = "launch it in an operator, which `torch.library.custom_op` makes of a function (docs/torch-operators.md)"
"""What lets torch see a launch: PTO kernels have no operators of their own."""


class PointerTaker:
    """Takes the arguments of one pointer parameter: each is an address and how many elements lie there.

    Arrays are C-contiguous, writable and of the pointer's element type.
    """

    def __init__(self, declared: Declared, parameter: Parameter) -> None:
        assert isinstance(parameter.annotation, Ptr)
        self._declared = declared
        self._name = parameter.name
        self._element = parameter.annotation.element

    @property
    def dtype(self) -> DataType:
        """The type of the elements."""
        return self._element.dtype

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._element.nbytes

    def __call__(self, value: Any) -> Words:
        """Return the address and the number of elements; TypeError or ValueError naming the parameter otherwise."""
        if _type(value) is int:
            return self._address(value)
        framework = framework_of(value)
        if framework is not None:
            return self._array(framework, value)
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

    def _array(self, framework: Framework, value: Any) -> Words:
        objection = memory_objection(value, OPERATOR) if framework is TORCH else ""
        objection = objection or framework.objection(value) or gradient_objection(value, OPERATOR)
        if objection:
            raise self._value_error(objection)
        given = _dtype_of(value)
        if BY_NAME.get(given, given) not in (self.dtype, SIGNED[8] if self.dtype == INDEX else self.dtype):
            message = f"parameter `{self._name}` points to {self._element} elements, got an array of {given}"
            help = f"pass an array of {self._element.dtype}, or the address of this one"
            raise self._declared.refusal(PtoArgumentError, message, self._name, help)
        try:
            argument = framework.argument(value)
        except (RuntimeError, BufferError, TypeError) as error:  # what frameworks say of arrays that are no memory
            raise self._value_error(f"cannot be read as memory: {error}") from error
        if not argument.is_contiguous:
            help = "pass a contiguous copy, or its address where the kernel knows its strides"
            raise self._value_error("is an array with gaps or another order than its axes", help)
        problem = framework.write_objection(argument)
        if problem:
            raise self._value_error(problem.replace("is written, but", "may be written, but", 1))
        return argument.address, prod(argument.shape)

    def _value_error(self, problem: str, help: str = "") -> PtoValueError:
        return self._declared.refusal(PtoValueError, f"parameter `{self._name}` {problem}", self._name, help)


def _dtype_of(value: Any) -> str:
    """Return the name of an array's element type in the language, or in its framework where it has none there."""
    try:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return str(from_torch(value.dtype))
        return str(from_numpy(value.dtype))
    except (TypeError, AttributeError):
        return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
