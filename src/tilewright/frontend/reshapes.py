"""Reshapes: an axis that is written -1 has as many elements as are left for it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tilewright.core.expr import Const, Expr, MakeTuple, integer
from tilewright.core.types import TensorType, TileType, is_static, static_shape


def counted(bound: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a reshape with its only -1 counted, where the other extents are known and divide."""
    x, given = bound["x"], bound["shape"]
    listed = given.elements if isinstance(given, MakeTuple) else given
    if (
        not isinstance(x, Expr)
        or not isinstance(x.type, (TensorType, TileType))
        or not isinstance(listed, (list, tuple))
    ):
        return dict(bound)
    extents: list[Any] = [each.value if isinstance(each, Const) else each for each in listed]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    known = [extent for extent in extents if type(extent) is int and extent > 0]
    if extents.count(-1) != 1 or len(known) != len(extents) - 1 or not is_static(x.type.shape):
        return dict(bound)
    count = prod(static_shape(x.type.shape))
    if count % prod(known):
        return dict(bound)
    extents[extents.index(-1)] = count // prod(known)
    return {**bound, "shape": MakeTuple(tuple(map(integer, extents)))}
