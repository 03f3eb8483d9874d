"""Signatures: what a specialization knows about each argument.

A tensor is known by its `TensorMeta`: rank, element type, and for each axis either its extent or a `DynDim`, which
stands for whatever the caller brings. A number is `Known`, its value part of the code, or a `RuntimeScalar`. An extent
that was read from an argument is a `Dim`: an int that remembers the parameter it came from, so that a helper that wants
the axis dynamic can make it so where it enters the program.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias, cast

from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Symbol
from tilewright.core.program import Function
from tilewright.core.types import Extent, TensorType, Type
from tilewright.dtypes import DataType
from tilewright.records import entity, record


@record
class DynDim:
    """An axis whose extent every call decides anew; `static_bound` is what it was when the program was made."""

    name: str
    literal: str
    static_bound: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"DynDim({self.name!r})" if self.name == self.literal else f"DynDim({self.name!r}, {self.literal!r})"


@record
class TensorMeta:
    """A tensor argument as a specialization sees it."""

    shape: tuple[int | DynDim, ...]
    dtype: DataType
    layout: TensorLayout = TensorLayout.ND
    is_turned: bool = False
    """Whether its memory holds the last two axes in the other order, as that of `w.T` does."""
    step: int = 1
    """How many elements apart neighbours along the last axis lie: 2 in `x[:, ::2]`."""

    @property
    def has_rows(self) -> bool:
        """Whether it lies as code takes tensors unless it is made for others: in rows of neighbours."""
        return not self.is_turned and self.step == 1


@record
class RuntimeScalar:
    """A number that stays a parameter of the compiled program."""

    dtype: DataType


def exact(value: object) -> tuple[type, object]:
    """Return a key that only values of the same type and the same bits share."""
    if isinstance(value, float):
        return type(value), struct.pack("<d", value)
    if isinstance(value, (tuple, list)):
        return type(cast(object, value)), tuple(exact(part) for part in cast("Sequence[object]", value))
    if isinstance(value, dict):
        items = cast("Mapping[object, object]", value).items()
        return dict, tuple((exact(key), exact(item)) for key, item in items)
    signature = getattr(type(value), "__cache_signature__", None)
    if signature is not None:
        return type(value), exact(signature(value))
    is_plain = value is None or isinstance(value, (int, str, bytes, Enum, DataType))
    return type(value), value if is_plain else id(value)


@entity
class Known:
    """A value that becomes part of the code; equal in type and bits only: 1, 1.0, True, 0.0 and -0.0 all differ."""

    value: Any

    @property
    def key(self) -> tuple[type, object]:
        """What two of them share when they stand for the same code."""
        return exact(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@record
class Alike:
    """An output that the caller leaves out, shaped like another argument."""

    source: str


Given: TypeAlias = TensorMeta | RuntimeScalar | Known | Alike
"""What is known about one argument."""


class Dim(int):
    """A static extent that remembers where it came from: the frame of a function, one of its parameters, an axis."""

    origin: tuple[object, int, int]

    @classmethod
    def of(cls, value: int, frame: object, parameter: int, axis: int) -> Dim:
        """Return an extent of a parameter of the function that is specialized in `frame`."""
        result = cls(value)
        result.origin = frame, parameter, axis
        return result


def axis_of(extent: Extent, frame: object) -> tuple[int, int] | None:
    """Return the parameter of `frame` and the axis that an extent came from, or None."""
    if isinstance(extent, Dim) and extent.origin[0] is frame:
        return extent.origin[1:]
    return None


def metas_of(entry: Function, taken: Sequence[str], given: Mapping[str, Given]) -> dict[str, Given]:
    """Return what an entry takes for granted about each argument, of which it has the `taken` ones as parameters."""
    types = dict(zip(taken, (param.type for param in entry.params), strict=True))
    return {name: _meta(name, one, types.get(name), given, entry) for name, one in given.items()}


def _meta(name: str, one: Given, type_: Type | None, given: Mapping[str, Given], entry: Function) -> Given:
    source = given[one.source] if isinstance(one, Alike) else one
    if not isinstance(source, TensorMeta) or not isinstance(type_, TensorType):
        return one
    bounds = [d.static_bound if isinstance(d, DynDim) else d for d in source.shape]
    is_turned = name in entry.turned
    extents = (*type_.shape[:-2], *type_.shape[:-3:-1]) if is_turned else type_.shape
    shape = tuple(
        int(extent) if isinstance(extent, int) else _dynamic(extent, bound)
        for extent, bound in zip(extents, bounds, strict=True)
    )
    return TensorMeta(shape, type_.dtype, type_.layout, is_turned, entry.stepped.get(name, 1))


def _dynamic(extent: Extent, bound: int | None) -> DynDim:
    name = extent.name if isinstance(extent, Symbol) else str(extent)
    return DynDim(name, name, bound)


def dynamic_extents(metas: Mapping[str, Given]) -> list[int]:
    """Return which of all the tensors' extents, one after the other, a program takes as they come."""
    dims = [dim for meta in metas.values() if isinstance(meta, TensorMeta) for dim in meta.shape]
    return [position for position, dim in enumerate(dims) if isinstance(dim, DynDim)]
