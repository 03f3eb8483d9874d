"""Scalars: numbers as the words of a launch."""

from __future__ import annotations

import math
from typing import Any

from tilewright.backends.abi import scalar_word
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, DataType, round_scalar
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoArgumentError, PtoValueError
from tilewright.pto.pointers import Words
from tilewright.pto.signature import Parameter
from tilewright.pto.types import Scalar


class ScalarTaker:
    """Takes the arguments of one scalar parameter: numbers that its type holds, floats rounded to it."""

    def __init__(self, declared: Declared, parameter: Parameter) -> None:
        assert isinstance(parameter.annotation, Scalar)
        self._declared = declared
        self._name = parameter.name
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
        message = f"parameter `{self._name}` is a scalar of {self._type}, got {shown}"
        return self._declared.refusal(PtoArgumentError, message, self._name)

    def _cannot_hold(self, number: object) -> PtoValueError:
        message = f"parameter `{self._name}` is a scalar of {self._type}, which cannot hold {number}"
        return self._declared.refusal(PtoValueError, message, self._name)
