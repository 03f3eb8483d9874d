"""Arguments: Python values as a specialization sees them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from tilewright.arrays import np
from tilewright.dtypes import DataType
from tilewright.frontend.signature import Given, Known, RuntimeScalar, TensorMeta
from tilewright.runtime.buffers import buffer_of, region_of


class _Runtime:
    """Stands for a scalar's value in signature mode: leave it to the compiled program's callers."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = _Runtime()
"""`kernel.compile(n=pl.RUNTIME)`: `n` stays a parameter, its value in nobody's code."""


@dataclass(frozen=True)
class Described:
    """One argument: what is known about it, and the extents that a cache looks it up by."""

    given: Given
    kind: object
    """Everything about it but its extents, hashable and exact."""
    extents: tuple[int | None, ...] = ()


def describe(name: str, value: Any) -> Described:
    """Return what a specialization knows about an argument; TypeError naming the parameter for one it cannot know."""
    if buffer_of(value) is not None:
        region = region_of(value, name)
        shape = region.data.shape
        return Described(TensorMeta(shape, region.dtype), (region.dtype.name, len(shape)), shape)
    if isinstance(value, np.generic):
        return describe(name, cast(Any, value).item())
    if value is None or isinstance(value, (bool, int, float)):
        known = Known(value)
        return Described(known, known.key)
    raise TypeError(
        f"`{name}` is neither a tensor nor a number: got {type(value).__name__}. "
        "Pass a torch tensor, a NumPy array, anything with __dlpack__, an int, a float or a bool"
    )


def runtime_scalar(dtype: DataType) -> Described:
    """Return a scalar argument that stays a parameter."""
    return Described(RuntimeScalar(dtype), ("runtime", dtype.name))


def device_of(value: Any) -> str | None:
    """Return the device a tensor is on, None for what is no tensor."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return str(value.device)
    return "cpu" if buffer_of(value) is not None else None


def check_one_device(named: Sequence[tuple[str, Any]]) -> None:
    """Raise ValueError when tensors lie on different devices."""
    found = [(name, device) for name, value in named if (device := device_of(value)) is not None]
    for name, device in found[1:]:
        if device != found[0][1]:
            first, where = found[0]
            raise ValueError(f"`{first}` is on {where} and `{name}` on {device}: bring them to one device")
