"""Attributes: what a body may ask a tile, a view or a pointer about."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from tilewright.errors import NotStaticError, UnknownAttributeError
from tilewright.frontend.names import nearest
from tilewright.pto.module import Value
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_sequence
from tilewright.pto.types import Ptr, Space, TensorView, TileBuf, VReg


@dataclass(frozen=True)
class Method:
    """A method of a value, waiting for its arguments."""

    owner: Value
    name: str


def attribute(t: Tracer, owner: Value, node: ast.Attribute) -> Any:
    """Return what `owner.name` is; UnknownAttributeError, with the nearest name, where it has none."""
    found = _known(owner)
    if node.attr not in found:
        message = f"{describe(owner)} has no attribute '{node.attr}'"
        help = nearest(node.attr, list(found)) or (f"it has {', '.join(found)}" if found else "scalars have none")
        raise t.error(UnknownAttributeError, node, message, help=help)
    value: Any = found[node.attr]
    if is_sequence(value) and None in value:
        message = f"`{node.attr}` of {describe(owner)} is only known when the kernel runs"
        raise t.error(NotStaticError, node, message, help="keep the numbers it was made from under a name")
    return value


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
            return {"shape": view.shape, "dtype": view.element}
        case Ptr() as pointer:
            return {"dtype": pointer.element, "memory_space": pointer.space.value}
        case VReg() as vector:
            return {"lanes": vector.lanes, "dtype": vector.element}
        case _:
            return {}


def address(t: Tracer, owner: Value, node: ast.expr) -> Value:
    """Return what `tile.as_ptr()` is: the address of the tile's first element."""
    tile = owner.type
    assert isinstance(tile, TileBuf)
    space = tile.space if tile.space is not Space.GM else Space.VEC
    return t.writer.value("pto.tile_buf_addr", [owner], Ptr(tile.element, space), t.span(node))
