"""Typed numbers: Python numbers that are scalars of one type of the language, and known while a kernel is read.

A parameter that is annotated `pl.Scalar[pl.INT8]` computes as an int8 does, whether its value is part of the code or
told by each call. Where it is part of the code it is one of these: a number like any other to whoever counts, indexes
or decides by it, and one of its type to operators.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from tilewright.core.expr import Const, Expr, constant
from tilewright.dtypes import BOOL, BY_NAME, DataType, round_scalar


class TypedNumber:
    """A number of one type; each type has a class of its own, derived from this and from `int` or `float`."""

    dtype: ClassVar[DataType]


def typed(value: int | float | bool, dtype: DataType) -> Any:
    """Return a number as one of a type: rounded to it, and a plain bool where that is what the type holds."""
    rounded = round_scalar(value, dtype)
    return rounded if dtype == BOOL else _class(dtype.name)(rounded)


@cache
def _class(name: str) -> Any:
    dtype = BY_NAME[name]
    return type(name, (TypedNumber, float if dtype.is_float() else int), {"dtype": dtype})


def as_constant(value: Any) -> Any:
    """Return a typed number as a constant of its type, anything else as it is."""
    if not isinstance(value, TypedNumber):
        return value
    return constant(value, value.dtype)  # pyright: ignore[reportArgumentType]


def as_number(value: Expr) -> Any:
    """Return a constant as a number of its type, any other expression as it is."""
    return typed(value.value, value.type.dtype) if isinstance(value, Const) else value
