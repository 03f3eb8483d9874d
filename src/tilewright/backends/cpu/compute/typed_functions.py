"""Typed functions: which instructions a function has for elements of a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.dtypes import BF16, FP64, DataType
from tilewright.native.llvm import Value


def of_type(emitter: Callable[..., Value], element: DataType) -> Callable[..., Value]:
    """Return the function of floats, or one that is written for elements of a type."""
    return _written(element).get(getattr(emitter, "name", ""), emitter)


def _written(element: DataType) -> Mapping[str, Callable[..., Any]]:
    if element == FP64:
        from tilewright.backends.cpu.compute import library  # few kernels have doubles

        return library.FUNCTIONS
    if element == BF16:
        from tilewright.backends.cpu.compute import bfloats

        return bfloats.FUNCTIONS
    return {}
