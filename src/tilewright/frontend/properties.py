"""Properties: what a kernel may ask a tensor or a tile about."""

from __future__ import annotations

import ast

from tilewright.core.expr import Expr
from tilewright.core.extents import as_scalar
from tilewright.core.types import TensorType, TileType
from tilewright.errors import UnknownAttributeError
from tilewright.frontend.foreign import meant
from tilewright.frontend.operators import apply
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS
from tilewright.records import record


@record
class BindDynamic:
    """`x.bind_dynamic`, waiting for an axis and a name."""

    owner: Expr
    type: TensorType


def attribute(t: Translator, owner: Expr, node: ast.Attribute) -> Value:
    """Return `x.shape` or `x.dtype` of a value of the kernel."""
    if isinstance(owner.type, (TensorType, TileType)):
        if node.attr == "dtype":
            return owner.type.dtype
        if node.attr == "shape":
            return tuple(extent_value(t, owner, axis, node) for axis in range(len(owner.type.shape)))
        if node.attr == "bind_dynamic" and isinstance(owner.type, TensorType):
            return BindDynamic(owner, owner.type)
    shaped = isinstance(owner.type, (TensorType, TileType))
    help = "it has .shape and .dtype" if shaped else "scalars have no attributes"
    if shaped:
        help = meant(node.attr, ast.unparse(node.value)) or help
    raise t.error(UnknownAttributeError, node, f"{owner.type} has no attribute '{node.attr}'", help=help)


def extent_value(t: Translator, owner: Expr, axis: int, node: ast.AST) -> Value:
    """Return an extent of a tensor or tile: a number, a symbol, or what the running program finds it to be."""
    assert isinstance(owner.type, (TensorType, TileType))
    extent = owner.type.shape[axis]
    if isinstance(extent, int):
        return extent
    if extent is not None:
        return as_scalar(extent)
    return t.placed(apply(t, OPS["tensor.dim"].spec, {"tensor": owner, "axis": axis, "valid": False}, node, {}), node)
