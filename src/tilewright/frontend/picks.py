"""Picks: parts of a tile that a tile of indices names, as `t[indices]`, `pl.take` and `pl.gather` say it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from tilewright.core.expr import Expr
from tilewright.core.op import OpSpec
from tilewright.core.types import ScalarType, TileType
from tilewright.dtypes import BOOL, INT32
from tilewright.errors import OperandError, ShapeMismatchError, SubscriptError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.derived import Writer
from tilewright.frontend.indexed import is_whole_slice, raveled
from tilewright.frontend.operators import apply
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.axes import one_axis
from tilewright.ops.declare import TILE
from tilewright.ops.registry import OPS

BY_MASK = (
    "pl.where(mask, t, 0.0) keeps the shape; pl.sum(pl.where(mask, t, 0.0)) folds what is chosen, pl.sum(mask) counts"
)


def picked(t: Translator, owner: Expr, node: ast.Subscript) -> Expr | None:
    """Return what a subscript names of a tile by tiles of indices; None for any other subscript."""
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    before = len(t.stmts)
    values = {place: t.operand(part) for place, part in enumerate(parts) if _may_be_tile(part)}
    tiles = [place for place, value in values.items() if _is_tile(value)]
    if not tiles:
        del t.stmts[before:]  # numbers are read again, as bounds of a window
        return None
    check_no_mask(t, [values[place] for place in tiles], node)
    others = [part for place, part in enumerate(parts) if place not in tiles]
    if len(tiles) == 1 and all(is_whole_slice(part) or _is_dots(part) for part in others):
        return _along(t, owner, values[tiles[0]], _axis(owner, parts, tiles[0]), node)
    return _elements(t, owner, parts, values, node)


_MASKS = ast.Compare, ast.BinOp, ast.UnaryOp, ast.Name, ast.Call, ast.Subscript, ast.Attribute
"""What a mask may be written as."""


def masked_write(t: Translator, target: ast.Subscript, value: Value, source: ast.expr) -> Expr | None:
    """Return a tile after `t[mask] = number`; None for any other assignment."""
    if not isinstance(target.slice, _MASKS):
        return None
    before, mask = len(t.stmts), t.operand(target.slice)
    if not _is_tile(mask) or mask.type.dtype != BOOL:
        del t.stmts[before:]
        return None
    if not isinstance(t.expr(value, source).type, ScalarType):
        message = "a number goes where a mask is True"
        help = f"pl.where({ast.unparse(target.slice)}, new, {ast.unparse(target.value)}) takes a tile"
        raise t.error(OperandError, source, message, help=help)
    bound = {"condition": mask, "x": t.placed(value, source), "y": t.operand(target.value)}
    return apply(t, OPS["tile.where"].spec, bound, target, {"condition": target.slice, "x": source})


def masked_change(t: Translator, target: ast.Subscript, value: ast.expr) -> bool:
    """Translate `t[mask] = ...` whose right side has parts under the same mask; return whether it is such a statement.

    What is computed element by element of `t[mask]` is what is computed of `t`, where the mask is True.
    """
    under = _Under(target.slice)
    whole: ast.expr = under.visit(deepcopy(value))
    if not under.is_used or not isinstance(target.slice, _MASKS) or not isinstance(target.value, ast.Name):
        return False
    before, mask, owner = len(t.stmts), t.operand(target.slice), t.operand(target.value)
    if not _is_tile(mask) or mask.type.dtype != BOOL or not _is_tile(owner):
        del t.stmts[before:]
        return False
    if under.other is not None:
        message = f"`{ast.unparse(under.other)}` is not computed element by element, as what a mask chooses is"
        help = f"choose first: pl.where({ast.unparse(target.slice)}, {target.value.id}, 0.0) keeps the shape"
        raise t.error(OperandError, under.other, message, help=help)
    bound = {"condition": mask, "x": t.placed(t.evaluate(whole), value), "y": owner}
    changed = apply(t, OPS["tile.where"].spec, bound, target, {"condition": target.slice, "x": value})
    if changed.type != owner.type:
        message = f"`{target.value.id}` is {owner.type}, and this would make it {changed.type}"
        help = "convert what goes into it with pl.cast, or use a new name: u = pl.where(mask, new, t)"
        raise t.error(OperandError, value, message, help=help)
    t.assign(target.value.id, changed, target.value)
    return True


class _Under(ast.NodeTransformer):
    """Takes a mask off what is under it, and notes what is not computed element by element."""

    def __init__(self, mask: ast.expr) -> None:
        self.mask, self.is_used = ast.dump(mask), False
        self.other: ast.expr | None = None

    def visit(self, node: ast.AST) -> Any:
        """Return a piece of syntax without the mask."""
        if isinstance(node, ast.Subscript) and ast.dump(node.slice) == self.mask:
            self.is_used = True
            return node.value
        if isinstance(node, ast.expr) and not self._is_elementwise(node):
            self.other = self.other or node
        return super().visit(node)

    def _is_elementwise(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            found = OPS.get(f"tile.{node.func.attr}") if isinstance(node.func, ast.Attribute) else None
            return found is not None and found.spec.family in ("elementwise", "mapped")
        is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Attribute)) and not is_product


def check_no_mask(t: Translator, indices: Sequence[Value], node: ast.Subscript, help: str = BY_MASK) -> None:
    """Raise where a mask stands for indices: how many elements it chooses is no shape."""
    for value in indices:
        if isinstance(value.type, TileType) and value.type.dtype == BOOL:
            message = f"a mask chooses any number of elements, and a tile has a fixed shape: got {value.type}"
            raise t.error(OperandError, node.slice, message, help=help)


def _may_be_tile(part: ast.expr) -> bool:
    return not isinstance(part, (ast.Slice, ast.Constant, ast.Starred, ast.Tuple, ast.List))


def _is_tile(value: Value) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, TileType)


def _is_dots(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is ...


def _axis(owner: Expr, parts: list[ast.expr], place: int) -> int:
    assert isinstance(owner.type, TileType)
    return place if not any(map(_is_dots, parts[:place])) else len(owner.type.shape) - len(parts) + place


def _along(t: Translator, owner: Expr, indices: Expr, axis: int, node: ast.expr) -> Expr:
    """Return what indices name along one axis, which takes the place of the rows meanwhile."""
    assert isinstance(owner.type, TileType)
    rank, w = len(owner.type.shape), Writer(t, node)
    if not 0 <= axis < rank:
        message = f"{owner.type} has {rank} axes, and this subscript names more"
        raise t.error(SubscriptError, node, message, help="give each axis one index or slice")
    turns = 0 < axis < rank - 1
    turned = w.named(w.do("tile.transpose", x=owner, axis1=0, axis2=axis)) if turns else owner
    bound = {"x": turned, "indices": indices, "axis": 0 if turns else axis}
    spans = {"x": node.value, "indices": node.slice} if isinstance(node, ast.Subscript) else {}
    taken = apply(t, OPS["tile.pick"].spec, bound, node, spans)
    return w.do("tile.transpose", x=w.named(taken), axis1=0, axis2=axis) if turns else taken


def _elements(
    t: Translator, owner: Expr, parts: list[ast.expr], values: Mapping[int, Any], node: ast.Subscript
) -> Expr:
    """Return single elements, an index for each axis naming them."""
    assert isinstance(owner.type, TileType)
    given = [
        (values[place] if place in values else t.operand(part), part)
        for place, part in enumerate(parts)
        if not isinstance(part, ast.Slice)
    ]
    indices = [t.expr(value, part) for value, part in given]
    fits = all(_is_tile(each) or (isinstance(each.type, ScalarType) and each.type.dtype.is_int()) for each in indices)
    if len(indices) != len(owner.type.shape) or not fits:
        help = "t[rows] and t[:, columns] name parts along one axis; t[rows, columns] has an index for every axis"
        raise t.error(SubscriptError, node.slice, "indices name parts along one axis, or single elements", help=help)
    return _gathered(t, owner, raveled(t, owner, indices, None, node)["indices"], node, node.value, node.slice)


def _gathered(t: Translator, owner: Expr, places: Expr, node: ast.AST, source: ast.expr, index: ast.expr) -> Expr:
    """Return the elements of a tile that have some numbers."""
    numbers = t.placed(Writer(t, node).do("tile.cast", x=places, target_type=INT32), node)
    bound = {"src": owner, "indices": numbers, "tmp": None}
    return apply(t, OPS["tile.gather"].spec, bound, node, {"src": source, "indices": index})


def of_tile(t: Translator, spec: OpSpec, given: Arguments, node: ast.Call) -> Expr | None:
    """Return what `pl.take` or `pl.gather` takes of a tile; None for anything else."""
    handler = _OF_TILES.get(spec.name) if given.args and _is_tile(given.args[0]) else None
    if handler is None or spec.name == "gather" and spec.kinds == TILE:
        return None
    names, meaning, usage = handler
    bound = dict(zip(names, given.args, strict=False)) | dict(given.kwargs)
    if len(given.args) == 2 and spec.name == "gather" and _is_tile(given.args[1]):
        bound = {"input": given.args[0], "index": given.args[1], "dim": -1} | dict(given.kwargs)
    if not _is_tile(bound.get(names[-1] if spec.name == "gather" else "indices")) or {*bound} - {*names}:
        raise t.error(OperandError, node, f"pl.{spec.name} of a tile takes a tile of indices", help=usage)
    return meaning(t, bound, node)


def _take(t: Translator, bound: Mapping[str, Any], node: ast.Call) -> Expr:
    axis = bound.get("axis", 0)
    if axis is None:
        return _gathered(t, bound["x"], bound["indices"], node, node, node)
    return _along(t, bound["x"], bound["indices"], one_axis(bound["x"], axis) + _rank(bound["x"]), node)


def _take_along(t: Translator, bound: Mapping[str, Any], node: ast.Call) -> Expr:
    """Return elements at the same place as their index, but at that index along one axis."""
    source, index = bound["input"], bound["index"]
    if _rank(source) != _rank(index):
        message = f"an index along an axis has as many axes as the tile, got {source.type} and {index.type}"
        raise t.error(ShapeMismatchError, node, message, help="t[indices] takes whole rows")
    axis, w = one_axis(source, bound.get("dim", -1)) + _rank(source), Writer(t, node)
    nothing = w.do("tile.sub", lhs=index, rhs=index)  # the indices say how much is valid
    places: list[Expr] = []
    for each in range(_rank(source)):
        shape = tuple(extent if each == place else 1 for place, extent in enumerate(index.type.shape))
        counted = w.do("tile.iota", shape=shape, axis=each, dtype=index.type.dtype)
        places.append(index if each == axis else w.named(w.do("tile.add", lhs=nothing, rhs=counted)))
    whole = raveled(t, source, places, None, node)["indices"]
    return _gathered(t, source, whole, node, node, node)


def _rank(tile: Expr) -> int:
    assert isinstance(tile.type, TileType)
    return len(tile.type.shape)


_OF_TILES: Mapping[str, tuple[tuple[str, ...], Any, str]] = {
    "take": (("x", "indices", "axis"), _take, "pl.take(t, rows), or t[rows]; masks and pads are for tensors"),
    "gather": (("input", "dim", "index"), _take_along, "pl.gather(t, dim=-1, index=places)"),
}
"""What each op is of a tile: the parameters that count, its meaning, how it is written."""
