"""Arguments: Python values as a specialization sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, cast

from tilewright.arrays import np
from tilewright.call.argument import Argument
from tilewright.call.device_tensor import DeviceTensor
from tilewright.call.frameworks import argument_of, is_tensor
from tilewright.dtypes import DataType, from_torch
from tilewright.frontend.containers import OddContainer, check_read_plainly
from tilewright.frontend.signature import Given, Known, RuntimeScalar, TensorMeta
from tilewright.records import record


@record
class Described:
    """One argument: what is known about it, and the extents that a cache looks it up by."""

    given: Given
    kind: object
    """Everything about it but its extents, hashable and exact."""
    extents: tuple[int | None, ...] = ()
    argument: Argument | None = None
    """Where a tensor lies, unless only its annotation is known."""


def describe(name: str, value: Any, is_run: bool = True) -> Described:
    """Return what a specialization knows about an argument; TypeError naming the parameter for one it cannot know.

    Of what is compiled for and not run on, torch's meta tensors tell all that there is to know.
    """
    if isinstance(value, DeviceTensor):
        compiled = "`compiled = kernel.compile(...)` on tensors like it, then `compiled(...)`"
        raise TypeError(f"`{name}` is a DeviceTensor, which compiled programs take and kernels do not: {compiled}")
    if is_tensor(value) and not is_run and getattr(value, "is_meta", False):
        dtype, shape = from_torch(value.dtype), tuple(value.shape)
        return Described(TensorMeta(shape, dtype), (dtype.name, len(shape)), shape)
    if is_tensor(value):
        argument = argument_of(value, name)
        dtype, shape = argument.dtype, argument.shape
        return Described(TensorMeta(shape, dtype), (dtype.name, len(shape)), shape, argument)
    if isinstance(value, np.generic):
        return describe(name, cast(Any, value).item())
    try:
        check_read_plainly(value)
    except OddContainer as error:
        raise TypeError(f"`{name}`: {error}; {error.help}") from None
    try:
        unsigned = unsigned_type(value)
    except ValueError as error:
        raise TypeError(f"`{name}` {error}, which the cache cannot tell apart from others") from None
    if unsigned is not None:
        raise TypeError(
            f"`{name}` is neither a tensor nor a number: got {unsigned.__name__}. Pass a torch tensor, a NumPy array, "
            "anything with __dlpack__, an int, a float, a bool, a str, tuples, lists and dicts of these, "
            "or an object whose type says in __cache_signature__ what the code depends on"
        )
    known = Known(value)
    return Described(known, known.key)


_SIGNED = (bool, int, float, str, type(None), Enum, DataType)


def unsigned_type(value: object, around: tuple[object, ...] = ()) -> type | None:
    """Return the type of what in a value cannot be told apart by the cache, None when everything can.

    A container that holds itself is a ValueError.
    """
    if any(value is outer for outer in around):
        raise ValueError(f"holds a {type(value).__name__} that holds itself")
    inside = (*around, value)
    if isinstance(value, (tuple, list)):
        parts = cast("Sequence[object]", value)
    elif isinstance(value, dict):
        items = cast("Mapping[object, object]", value).items()
        parts = [part for item in items for part in item]
    else:
        is_signed = isinstance(value, _SIGNED) or hasattr(type(value), "__cache_signature__")
        return None if is_signed else type(value)
    return next((found for part in parts if (found := unsigned_type(part, inside)) is not None), None)


def built(name: str, type_: type, value: Any) -> Any:
    """Return an argument as the type its annotation asks for; TypeError naming the parameter when that fails."""
    if isinstance(value, type_):
        return value
    try:
        return type_(value)
    except Exception as error:
        raise TypeError(f"`{name}` cannot be made a {type_.__name__} from {value!r}: {error}") from error


def runtime_scalar(dtype: DataType) -> Described:
    """Return a scalar argument that stays a parameter."""
    return Described(RuntimeScalar(dtype), ("runtime", dtype.name))
