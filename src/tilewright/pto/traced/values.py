"""Values: what a variable of a body stands for: something Python knows, a `Value` of the module, or a tuple of both.

Where two paths meet, leaves of tuples that are equal stay as they are; others become values of one type, which a
branch or a loop then hands on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from tilewright.pto.module import Value
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import F32, I1, INDEX, Scalar, Type


class Lanes(tuple[object, ...]):
    """Several numbers of one type that are computed with as one, `pto.Vec`: each op on them is one on each."""


class Handle:
    """Something a body holds whose methods are called with the tracer and their arguments."""


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


def natural(value: bool | int | float) -> Scalar:
    """Return the type a Python number takes where nothing else decides: `i1`, `index` or `f32`."""
    if isinstance(value, bool):
        return I1
    return INDEX if isinstance(value, int) else F32


def leaves(value: object) -> list[object]:
    """Return the parts of a value that are no tuples, in order."""
    if is_sequence(value):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def rebuilt(like: object, parts: Iterator[object]) -> object:
    """Return a value of the shape of another, with other leaves."""
    if is_sequence(like):
        made = tuple(rebuilt(part, parts) for part in like)
        return Lanes(made) if isinstance(like, Lanes) else made
    return next(parts)


def is_alike(lhs: object, rhs: object) -> bool:
    """Return whether two values are tuples of the same shape, or neither is a tuple."""
    if is_sequence(lhs) and is_sequence(rhs):
        left, right = lhs, rhs
        return len(left) == len(right) and all(map(is_alike, left, right))
    return not is_sequence(lhs) and not is_sequence(rhs)


def is_same(lhs: object, rhs: object) -> bool:
    """Return whether two leaves need no choice between them."""
    if isinstance(lhs, (Value, type(None))) or isinstance(rhs, (Value, type(None))):
        return lhs is rhs
    return lhs is rhs or (type(lhs) is type(rhs) and lhs == rhs)


def common_type(lhs: object, rhs: object) -> Type | None:
    """Return the type that two leaves can both have, or None."""
    if isinstance(lhs, Value) and isinstance(rhs, Value):
        return lhs.type if lhs.type == rhs.type else None
    if isinstance(lhs, Value):
        return lhs.type if _takes(lhs.type, rhs) else None
    if isinstance(rhs, Value):
        return common_type(rhs, lhs)
    if not isinstance(lhs, (bool, int, float)) or not isinstance(rhs, (bool, int, float)):
        return None
    types = {natural(lhs), natural(rhs)}
    return types.pop() if len(types) == 1 else F32 if types == {INDEX, F32} else None


def _takes(type: Type, number: object) -> bool:
    """Return whether a Python number can be a value of a type."""
    if not isinstance(type, Scalar) or not isinstance(number, (bool, int, float)):
        return False
    if isinstance(number, bool) or type == I1:
        return type == I1 and isinstance(number, bool)
    return type.is_float or isinstance(number, int)
