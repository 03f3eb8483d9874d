"""Properties: what a kernel may ask a tensor or a tile about."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial, reduce
from math import prod

from tilewright.core.build import scalar
from tilewright.core.expr import Expr
from tilewright.core.extents import as_scalar
from tilewright.core.types import TensorType, TileType
from tilewright.errors import ArgumentCountError, OutOfBoundsError, UnknownAttributeError
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


@record
class Method:
    """`self.name` inside a program: one of its functions."""

    name: str


class ProgramSelf:
    """What `self` is inside a program: its functions by name."""

    def __getattr__(self, name: str) -> Method:
        return Method(name)


def attribute(t: Translator, owner: Expr, node: ast.Attribute) -> Value:
    """Return `x.shape`, `x.dtype`, `x.ndim` or `x.T` of a value of the kernel."""
    if isinstance(owner.type, (TensorType, TileType)):
        if node.attr == "ndim":
            return len(owner.type.shape)
        if node.attr in ("T", "mT") and len(owner.type.shape) >= 2:
            if node.attr == "mT" or len(owner.type.shape) == 2:
                return apply(t, OPS["tensor.transpose"].spec, {"x": owner, "axis1": -2, "axis2": -1}, node, {})
        if node.attr == "dtype":
            return owner.type.dtype
        if node.attr == "shape":
            return tuple(extent_value(t, owner, axis, node) for axis in range(len(owner.type.shape)))
        if node.attr == "bind_dynamic" and isinstance(owner.type, TensorType):
            return BindDynamic(owner, owner.type)
    shaped = isinstance(owner.type, (TensorType, TileType))
    help = "it has .shape, .dtype and .ndim, .size(axis) and .numel()" if shaped else "scalars have no attributes"
    if shaped and node.attr not in METHODS:
        from tilewright.frontend.foreign import meant

        help = meant(node.attr, ast.unparse(node.value)) or help
    raise t.error(UnknownAttributeError, node, f"{owner.type} has no attribute '{node.attr}'", help=help)


METHODS = ("dim", "numel", "size")
"""What is asked about a tensor or a tile by a call."""


def asked(t: Translator, node: ast.Call) -> Expr | None:
    """Return the tensor or tile that a call asks about, None where it does something else."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
        return None
    owner = t.operand(node.func.value)
    return owner if isinstance(owner, Expr) and isinstance(owner.type, (TensorType, TileType)) else None


def answer(t: Translator, owner: Expr, node: ast.Call) -> Value:
    """Return what `x.size()`, `x.size(axis)`, `x.dim()` or `x.numel()` gives."""
    assert isinstance(node.func, ast.Attribute) and isinstance(owner.type, (TensorType, TileType))
    extents = tuple(extent_value(t, owner, axis, node) for axis in range(len(owner.type.shape)))
    given = [t.operand(arg) for arg in node.args] + [t.operand(keyword.value) for keyword in node.keywords]
    if node.func.attr == "size" and len(given) == 1 and isinstance(given[0], int):
        if not -len(extents) <= given[0] < len(extents):
            help = f"it has {len(extents)} axes, counted from 0"
            raise t.error(OutOfBoundsError, node, f"{owner.type} has no axis {given[0]}", help=help)
        return extents[given[0]]
    if given:
        help = "x.size(axis) takes an axis that the compiler knows; x.numel() and x.dim() take nothing"
        raise t.error(ArgumentCountError, node, f"`{ast.unparse(node)}` asks for something else", help=help)
    if node.func.attr == "dim":
        return len(extents)
    return extents if node.func.attr == "size" else count_of(t, extents, node)


def count_of(t: Translator, extents: Sequence[Value], node: ast.AST) -> Value:
    """Return how many elements extents hold together."""
    if all(isinstance(extent, int) for extent in extents):
        return prod(extents)
    return reduce(partial(scalar, "mul"), [t.expr(extent, node) for extent in extents])


def extent_value(t: Translator, owner: Expr, axis: int, node: ast.AST) -> Value:
    """Return an extent of a tensor or tile: a number, a symbol, or what the running program finds it to be."""
    assert isinstance(owner.type, (TensorType, TileType))
    extent = owner.type.shape[axis]
    if isinstance(extent, int):
        return extent
    if extent is not None:
        return as_scalar(extent)
    return t.placed(apply(t, OPS["tensor.dim"].spec, {"tensor": owner, "axis": axis, "valid": False}, node, {}), node)
