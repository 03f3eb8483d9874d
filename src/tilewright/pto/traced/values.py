"""Values: what a variable of a body stands for: something Python knows, a `Value` of the module, or a tuple of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tilewright.pto.module import Value
from tilewright.pto.text.typetext import brief_text


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether a value has parts: a tuple, or a list, which bodies do not tell apart."""
    return isinstance(value, (tuple, list))


def is_runtime(value: object) -> bool:
    """Return whether a value, or a part of it, is only known when the kernel runs."""
    return any(map(is_runtime, value)) if is_sequence(value) else isinstance(value, Value)


def describe(value: object) -> str:
    """Return what a value is, as messages say it."""
    if is_sequence(value):
        return f"({', '.join(map(describe, value))})"
    return brief_text(value.type) if isinstance(value, Value) else repr(value)
