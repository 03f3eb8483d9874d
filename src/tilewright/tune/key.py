"""Tuning keys: what of a call decides which configuration is best for it.

An item names a parameter (`n`, or `x`, a tensor by its element type and shape), or a part of a tensor: `x.shape`,
`x.shape[0]`, `x.ndim`, `x.dtype`. Without items it is the element types and shapes of all tensors but pure outputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

from tilewright.call.frameworks import is_tensor
from tilewright.frontend.signature import TensorMeta, exact
from tilewright.jit.arguments import describe
from tilewright.records import record

_ITEM = re.compile(r"(?P<name>[^\W\d]\w*)(?:\.(?P<part>shape|ndim|dtype))?(?:\[(?P<axis>-?\d+)\])?")


class Part(Enum):
    """What of an argument an item names."""

    WHOLE = ""
    SHAPE = "shape"
    RANK = "ndim"
    DTYPE = "dtype"


@record
class Item:
    """One part of a key."""

    name: str
    part: Part = Part.WHOLE
    axis: int | None = None

    def __str__(self) -> str:
        part = f".{self.part.value}" if self.part.value else ""
        return f"{self.name}{part}{'' if self.axis is None else f'[{self.axis}]'}"

    def of(self, value: Any) -> object:
        """Return what an argument has for it; TypeError where it has no such part."""
        if value is None:
            return None
        if not is_tensor(value):
            if self.part is not Part.WHOLE:
                raise TypeError(f"the tuning key `{self}` is of a tensor, and `{self.name}` is {value!r}")
            return exact(value)
        tensor = describe(self.name, value, is_run=False).given
        assert isinstance(tensor, TensorMeta)
        if self.axis is not None:
            if not -len(tensor.shape) <= self.axis < len(tensor.shape):
                raise TypeError(f"the tuning key `{self}` needs an axis that `{self.name}` has not: {tensor.shape}")
            return tensor.shape[self.axis]
        parts = {Part.SHAPE: tensor.shape, Part.RANK: len(tensor.shape), Part.DTYPE: tensor.dtype.name}
        return parts.get(self.part, (tensor.dtype.name, tensor.shape))

    def axes(self, rank: int) -> Collection[int]:
        """Return the axes, of so many, whose extents it depends on."""
        if self.part in (Part.RANK, Part.DTYPE):
            return ()
        return range(rank) if self.axis is None else (self.axis % rank,)


def item(text: object) -> Item:
    """Return a key's item as it was written; ValueError for anything else."""
    found = _ITEM.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
    if found is None or (found["axis"] is not None and found["part"] != "shape"):
        raise ValueError(
            f"a tuning key is a parameter, or as in 'x.shape[0]', 'x.shape', 'x.ndim', 'x.dtype', got {text!r}"
        )
    return Item(found["name"], Part(found["part"] or ""), None if found["axis"] is None else int(found["axis"]))


@record
class Key:
    """What a kernel is tuned by; without items, all tensors that are given it."""

    items: Sequence[Item] | None

    def of(self, values: Mapping[str, Any], outputs: Collection[str]) -> tuple[object, ...]:
        """Return what some arguments have for it, None for a parameter that is left out."""
        if self.items is not None:
            return tuple(each.of(values.get(each.name)) for each in self.items)
        return tuple(Item(name).of(value) for name, value in values.items() if name not in outputs and is_tensor(value))

    def axes(self, name: str, rank: int) -> set[int]:
        """Return the axes of a parameter that it depends on."""
        items = [Item(name)] if self.items is None else [each for each in self.items if each.name == name]
        return {axis for each in items for axis in each.axes(rank)}

    def has(self, name: str) -> bool:
        """Return whether a number is part of it."""
        return self.items is not None and any(each.name == name for each in self.items)
