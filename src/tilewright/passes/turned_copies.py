"""Turned copies: a tensor that lies on its side is written into another one tile by tile, each turned by itself.

Read row by row it would take each line of memory for one element, and lines that are a power of two apart drive each
other out of the caches before their other elements are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, scalar
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call, Expr, MakeTuple, Var
from tilewright.core.stmt import EvalStmt, Stmt
from tilewright.core.types import TensorType, is_fully_valid
from tilewright.passes.blocks import ZERO, Blocks, Offsets, sizes_of

SIDE = 64
"""Rows and columns of a tile."""

Views = Mapping[Var, Call]
"""How the tensors were made that show elements of others."""


def turned_copy(stmt: EvalStmt, views: Views) -> Sequence[Stmt] | None:
    """Return what writes a tensor on its side into another, None for any other statement."""
    copy = stmt.expr
    if not isinstance(copy, Call) or copy.op.name != "tensor.assemble":
        return None
    given = arguments(copy)
    source, target, offset = given["source"], given["target"], given["offset"]
    if not isinstance(source, Var) or not isinstance(target, Var) or not isinstance(offset, MakeTuple):
        return None
    turned = _turned(source, views)
    if turned is None or _root(source, views) is _root(target, views) or given["atomic"] is not AtomicType.None_:
        return None
    if not _fits(source.type, target.type, offset.elements):
        return None
    return _tile_by_tile(Blocks(stmt.span, source.name_hint), turned, source, target, offset.elements)


def _turned(source: Var, views: Views) -> Expr | None:
    """Return the tensor of which one shows the rows as columns."""
    made = views.get(source)
    if made is None or made.op.name != "tensor.transpose" or not isinstance(source.type, TensorType):
        return None
    given, rank = arguments(made), len(source.type.shape)
    axes = {axis % rank for axis in (given["axis1"], given["axis2"]) if isinstance(axis, int)}
    return made.args[0] if axes == {rank - 1, rank - 2} else None


def _root(tensor: Expr, views: Views) -> Expr:
    """Return the tensor whose elements one shows."""
    while isinstance(tensor, Var) and tensor in views:
        tensor = views[tensor].args[0]
    return tensor


def _fits(source: object, target: object, offset: Sequence[Expr]) -> bool:
    """Return whether a tensor is known to fit another from an offset on: nothing is written of one that does not."""
    if not isinstance(source, TensorType) or not isinstance(target, TensorType) or not is_fully_valid(source):
        return False
    is_whole = source.shape == target.shape and None not in source.shape and all(at == ZERO for at in offset)
    is_known = all(isinstance(extent, int) for extent in (*source.shape, *target.shape))
    return source.dtype == target.dtype and len(source.shape) == len(target.shape) and (is_whole or is_known)


def _tile_by_tile(b: Blocks, x: Expr, source: Var, target: Var, offset: Sequence[Expr]) -> Sequence[Stmt]:
    extents = b.extents(source)
    sizes = sizes_of(extents, SIDE, SIDE)

    def block(inner: Blocks, at: Offsets) -> None:
        *batch, row, column = at
        tile = inner.load(x, [*batch, column, row], [*sizes[:-2], sizes[-1], sizes[-2]])
        turned = inner.do("tile.transpose", x=tile, axis1=-2, axis2=-1)
        place = [here if start == ZERO else scalar("add", start, here) for start, here in zip(offset, at, strict=True)]
        inner.store(turned, place, target)

    b.each(extents, sizes, block)
    return b.stmts
