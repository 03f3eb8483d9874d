"""Attributes: what a body may ask a tile, a view or a pointer about."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from tilewright.errors import UnknownAttributeError
from tilewright.frontend.names import nearest
from tilewright.pto.module import Value
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_sequence
from tilewright.pto.types import INDEX, Ptr, TensorView, TileBuf, VReg


@dataclass(frozen=True)
class Method:
    """A method of a value, waiting for its arguments."""

    owner: Value
    name: str


@dataclass(frozen=True)
class Measure:
    """The sizes or strides of a view, of which only the running program may know some."""

    owner: Value
    what: str


def attribute(t: Tracer, owner: Value, node: ast.Attribute) -> Any:
    """Return what `owner.name` is; UnknownAttributeError, with the nearest name, where it has none."""
    found = _known(owner)
    if node.attr not in found:
        message = f"{describe(owner)} has no attribute '{node.attr}'"
        help = nearest(node.attr, list(found)) or (f"it has {', '.join(found)}" if found else "scalars have none")
        raise t.error(UnknownAttributeError, node, message, help=help)
    value: Any = found[node.attr]
    if isinstance(value, Measure):
        return _measured(t, value, node)
    if is_sequence(value):
        words = zip(("rows", "cols"), value, strict=False)
        return tuple(_valid(t, owner, word, node) if each is None else each for word, each in words)
    return value


def _valid(t: Tracer, tile: Value, word: str, node: ast.Attribute) -> Value:
    """Return how many rows or columns of a tile are valid, where only the running program knows."""
    made = t.writer.value(f"pto.tile_valid_{word}", [tile], INDEX, t.span(node))
    t.writer.never_negative.add(made)
    return made


def _known(owner: Value) -> dict[str, Any]:
    match owner.type:
        case TileBuf() as tile:
            return {
                "shape": (tile.rows, tile.cols),
                "valid_shape": (tile.valid_rows, tile.valid_cols),
                "dtype": tile.element,
                "memory_space": tile.space.loc,
                "as_ptr": Method(owner, "as_ptr"),
                "fill": Method(owner, "fill"),
            }
        case TensorView() as view:
            measured = {"shape": Measure(owner, "dim"), "strides": Measure(owner, "stride")}
            return {**measured, "dtype": view.element, "element_type": view.element, "as_ptr": Method(owner, "as_ptr")}
        case Ptr() as pointer:
            return {"dtype": pointer.element, "memory_space": pointer.space.value}
        case VReg() as vector:
            return {"lanes": vector.lanes, "dtype": vector.element}
        case _:
            return {}


def _measured(t: Tracer, measure: Measure, node: ast.Attribute) -> tuple[int | Value, ...]:
    """Return the sizes or strides of a view: numbers where its type has them, values where it does not."""
    view = measure.owner.type
    assert isinstance(view, TensorView)
    known = view.shape if measure.what == "dim" else (None,) * len(view.shape)
    return tuple(_one(t, measure, axis, node) if each is None else each for axis, each in enumerate(known))


def _one(t: Tracer, measure: Measure, axis: int, node: ast.Attribute) -> Value:
    span = t.span(node)
    made = t.writer.value(
        f"pto.get_tensor_view_{measure.what}", [measure.owner, t.writer.constant(axis, INDEX, span)], INDEX, span
    )
    t.writer.never_negative.add(made)
    return made


def address(t: Tracer, owner: Value, node: ast.expr) -> Value:
    """Return what `as_ptr()` is: the address of the first element of a tile or a view."""
    tile = owner.type
    if isinstance(tile, TensorView):
        return t.writer.value("pto.tensor_view_addr", [owner], Ptr(tile.element), t.span(node))
    assert isinstance(tile, TileBuf)
    return t.writer.value("pto.tile_buf_addr", [owner], Ptr(tile.element, tile.space), t.span(node))
