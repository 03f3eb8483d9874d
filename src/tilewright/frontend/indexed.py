"""Indexed elements: an index along each axis, tiles among them, made one tile that counts elements along rows."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.build import scalar
from tilewright.core.expr import Expr, integer
from tilewright.core.op import OpSpec
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.dtypes import INT64
from tilewright.errors import ShapeMismatchError
from tilewright.frontend.derived import Writer
from tilewright.frontend.operators import apply
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.derived import extents
from tilewright.ops.registry import OPS


def one_tile(t: Translator, spec: OpSpec, bound: dict[str, Any], node: ast.AST) -> dict[str, Any]:
    """Return the arguments of an op that takes indices, with an index along each axis made one that counts elements."""
    x, given = bound.get("x"), bound.get("indices")
    is_whole = isinstance(given, Expr) and not isinstance(given.type, ScalarType)
    if is_whole or not _takes_places(spec) or not isinstance(x, Expr) or not isinstance(x.type, TensorType):
        return bound
    parts = [t.expr(part, node) for part in sequence(given)]
    return {**bound, **raveled(t, x, parts, bound["mask"], node)}


def _takes_places(spec: OpSpec) -> bool:
    return "indices" in spec.names and {"x", "mask", "axis"} <= {*spec.names}


def one_number(t: Translator, spec: OpSpec, indices: Value, result: Expr, node: ast.AST) -> Expr:
    """Return what an op gives: of an element that numbers alone name, the element as a number."""
    parts = sequence(indices) if _takes_places(spec) and isinstance(result.type, TileType) else ()
    are_tiles = any(isinstance(part, Expr) and isinstance(part.type, TileType) for part in parts)
    if not parts or are_tiles:
        return result
    return Writer(t, node).do("tile.read", x=result, indices=(0,))


def raveled(t: Translator, x: Expr, parts: Sequence[Expr], mask: Value, node: ast.AST) -> dict[str, Any]:
    """Return an index along each axis of a tensor or tile as one tile of indices, which counts elements along rows."""
    assert isinstance(x.type, (TensorType, TileType))
    if len(parts) != len(x.type.shape):
        help = "one tile of indices names rows; a list has an index for each axis"
        message = f"{x.type} has {len(x.type.shape)} axes, and there are {len(parts)} indices"
        raise t.error(ShapeMismatchError, node, message, help=help)
    w = Writer(t, node)
    if not any(isinstance(part.type, TileType) for part in parts):
        parts = (w.do("tile.full", shape=(1,), dtype=INT64, value=parts[0]), *parts[1:])
    (index, *others), (extent, *rest) = parts, [_scalar(each) for each in extents(w, x)]
    for other, size in zip(others, rest, strict=True):
        index = w.do("tile.ravel_index", outer=index, inner=other, extents=(extent, size), mask=mask)
        extent = scalar("mul", extent, size)
    return {"indices": t.placed(index, node), "axis": None if rest else 0}


def _scalar(extent: Any) -> Expr:
    return extent if isinstance(extent, Expr) else integer(extent)


def tiles_among(t: Translator, owner: Expr, node: ast.Subscript) -> list[Expr] | None:
    """Return the indices of a subscript that names places of a tensor by tiles; None for any other."""
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    while len(parts) > 1 and is_whole_slice(parts[-1]):
        parts.pop()  # x[rows, :] is x[rows]
    if not isinstance(owner.type, TensorType) or any(isinstance(part, (ast.Slice, ast.Starred)) for part in parts):
        return None
    if all(isinstance(part, (ast.Constant, ast.UnaryOp)) for part in parts):
        return None
    values = [t.operand(part) for part in parts]
    is_indexed = any(isinstance(value, Expr) and isinstance(value.type, TileType) for value in values)
    return [t.expr(value, part) for value, part in zip(values, parts, strict=True)] if is_indexed else None


def is_whole_slice(part: ast.expr) -> bool:
    """Return whether a part of a subscript is `:`."""
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def taken(t: Translator, owner: Expr, parts: Sequence[Expr], node: ast.Subscript) -> Expr:
    """Return `owner[parts]`: the rows that one tile names, or the elements of an index along each axis."""
    return apply(t, OPS["tile.take"].spec, {**_bound(t, owner, parts, node), "pad": 0}, node, _spans(node))


def put(t: Translator, owner: Expr, parts: Sequence[Expr], value: Value, node: ast.Subscript) -> Expr:
    """Return `owner` after `owner[parts] = value`."""
    given = {**_bound(t, owner, parts, node), "values": t.placed(value, node)}
    return apply(t, OPS["tile.put"].spec, given, node, _spans(node))


def _bound(t: Translator, owner: Expr, parts: Sequence[Expr], node: ast.AST) -> dict[str, Any]:
    bound: dict[str, Any] = {"x": owner, "indices": parts[0], "mask": None, "axis": 0}
    return bound if len(parts) == 1 else {**bound, **raveled(t, owner, parts, None, node)}


def _spans(node: ast.Subscript) -> Mapping[str, ast.AST]:
    return {"x": node.value, "indices": node.slice}
