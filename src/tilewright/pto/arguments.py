"""Arguments of launches: arrays, tensors, addresses and numbers as words."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

from tilewright.backends.abi import scalar_word
from tilewright.call.frameworks import TORCH, Framework, framework_of
from tilewright.call.torch_state import gradient_objection, memory_objection
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, BY_NAME, INDEX, SIGNED, DataType, from_numpy, from_torch, round_scalar
from tilewright.imported import imported
from tilewright.pto.declared import Declared, E
from tilewright.pto.errors import OPERATOR, PtoArgumentError, PtoValueError
from tilewright.pto.groups import END, UNKNOWN
from tilewright.pto.signature import Parameter
from tilewright.pto.types import Ptr, Scalar

Words: TypeAlias = tuple[int, ...]

_type: Any = type


class Taker:
    """Takes the arguments of one parameter."""

    def __init__(self, declared: Declared, parameter: Parameter) -> None:
        self._declared = declared
        self._name = parameter.name

    def _refusal(self, kind: type[E], problem: str, help: str = "") -> E:
        return self._declared.refusal(kind, f"parameter `{self._name}` {problem}", self._name, help)


class PointerTaker(Taker):
    """Takes the arguments of one pointer parameter: each is an address and how many elements lie there.

    Arrays are C-contiguous, of the pointer's element type, and writable where the kernel writes them.
    """

    def __init__(self, declared: Declared, parameter: Parameter, is_written: Callable[[], bool]) -> None:
        assert isinstance(parameter.annotation, Ptr)
        super().__init__(declared, parameter)
        self._element = parameter.annotation.element
        self._is_written = is_written
        """Whether the kernel writes there, which takes time to find out."""

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
            ways = "pass a torch tensor, a NumPy array, a ctypes.c_void_p or an address"
            problem = f"is a pointer to {self._element}: {ways}, got {type(value).__name__}"
            raise self._refusal(PtoArgumentError, problem)
        return self._address(operator.index(value))

    def _address(self, address: int) -> Words:
        if not 0 < address < END:
            shown = "a null pointer" if address == 0 else f"{address:#x}, which is no address of this process"
            raise self._refusal(PtoValueError, f"is {shown}")
        return address, UNKNOWN

    def _array(self, framework: Framework, value: Any) -> Words:
        objection = memory_objection(value, OPERATOR) if framework is TORCH else ""
        objection = (
            objection or framework.objection(value) or gradient_objection(value, f"give it a backward: {OPERATOR}")
        )
        if objection:
            raise self._refusal(PtoValueError, objection)
        given = _dtype_of(value)
        if BY_NAME.get(given, given) not in (self.dtype, SIGNED[8] if self.dtype == INDEX else self.dtype):
            help = f"pass an array of {self._element.dtype}, or the address of this one"
            raise self._refusal(PtoArgumentError, f"points to {self._element} elements, got an array of {given}", help)
        try:
            argument = framework.argument(value)
        except (RuntimeError, BufferError, TypeError) as error:  # what frameworks say of arrays that are no memory
            raise self._refusal(PtoValueError, f"cannot be read as memory: {error}") from error
        if not argument.is_contiguous:
            help = "pass a contiguous copy, or its address where the kernel knows its strides"
            raise self._refusal(PtoValueError, "is an array with gaps or another order than its axes", help)
        problem = framework.write_objection(argument)
        if problem and self._is_written():
            raise self._refusal(PtoValueError, problem)
        return argument.address, prod(argument.shape)


def device_of(value: Any) -> str:
    """Return the device that an array is on; nothing for an address."""
    framework = None if _type(value) is int else framework_of(value)
    return "" if framework is None else framework.argument(value).device


def _dtype_of(value: Any) -> str:
    """Return the name of an array's element type in the language, or in its framework where it has none there."""
    try:
        torch = imported("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return str(from_torch(value.dtype))
        return str(from_numpy(value.dtype))
    except (TypeError, AttributeError):
        return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")


class ScalarTaker(Taker):
    """Takes the arguments of one scalar parameter: numbers that its type holds, floats rounded to it."""

    def __init__(self, declared: Declared, parameter: Parameter) -> None:
        assert isinstance(parameter.annotation, Scalar)
        super().__init__(declared, parameter)
        self._type = parameter.annotation
        self._dtype: DataType = self._type.dtype
        self._is_int = self._dtype.is_int()
        self._low, self._high = self._dtype.limits if self._is_int else (0, 1)

    @property
    def type(self) -> ScalarType:
        """The type of the numbers."""
        return ScalarType(self._dtype)

    def __call__(self, value: Any) -> Words:
        """Return the word of a number; TypeError or ValueError naming the parameter otherwise."""
        return (scalar_word(self._dtype, self._number(value)),)

    def _number(self, value: Any) -> int | float | bool:
        number = self._plain(value)
        if self._dtype == BOOL:
            if not isinstance(number, bool) and number not in (0, 1):
                raise self._cannot_hold(number)
            return bool(number)
        if isinstance(number, bool) or (self._is_int and isinstance(number, float)):
            raise self._wrong_kind(value)
        if self._is_int:
            if not self._low <= number <= self._high:
                raise self._cannot_hold(number)
            return number
        return self._rounded(number)

    def _plain(self, value: Any) -> int | float | bool:
        """Return a number of Python, also where it comes as one of NumPy or torch."""
        if not isinstance(value, (bool, int, float)):
            try:
                value = value.item() if getattr(value, "ndim", 1) == 0 else value
            except (RuntimeError, TypeError, ValueError, AttributeError):
                raise self._wrong_kind(value) from None
        if not isinstance(value, (bool, int, float)):
            raise self._wrong_kind(value)
        return value

    def _rounded(self, number: int | float) -> float:
        try:
            exact = float(number)
            rounded = float(round_scalar(exact, self._dtype))
        except OverflowError:
            raise self._cannot_hold(number) from None
        if math.isinf(rounded) and not math.isinf(exact):
            raise self._cannot_hold(number)
        return rounded

    def _wrong_kind(self, value: object) -> PtoArgumentError:
        shown = f"{value!r}" if isinstance(value, (bool, int, float)) else type(value).__name__
        return self._refusal(PtoArgumentError, f"is a scalar of {self._type}, got {shown}")

    def _cannot_hold(self, number: object) -> PtoValueError:
        return self._refusal(PtoValueError, f"is a scalar of {self._type}, which cannot hold {number}")
