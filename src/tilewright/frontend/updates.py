"""Updates: what `x[window] += tile` makes of a window of a tensor, which is read as a tile first."""

from __future__ import annotations

import ast

from tilewright.core.expr import Const, Expr, integer
from tilewright.core.types import TensorType, TileType
from tilewright.errors import SubscriptError
from tilewright.frontend.derived import Writer
from tilewright.frontend.subscripts import Window, window
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.expressions import combined
from tilewright.frontend.walk.walker import Value


def updated(t: Translator, target: ast.Subscript, both: ast.BinOp) -> Value:
    """Return what a window becomes; one of a tensor that meets a tile is loaded, as far as the tile is valid."""
    held, given = t.operand(both.left), t.operand(both.right)
    if _is(TensorType, held) and _is(TileType, given):
        held, given = _loaded(t, held, t.placed(given, both.right), target, both)
    return combined(t, held, given, both)


def _is(kind: type, value: Value) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, kind)


def _loaded(t: Translator, view: Expr, given: Expr, target: ast.Subscript, both: ast.BinOp) -> tuple[Expr, Expr]:
    """Return a window of a tensor as a tile, and the tile that it meets."""
    owner, w = t.operand(target.value), Writer(t, both.left)
    assert isinstance(view.type, TensorType) and isinstance(given.type, TileType)
    found = window(t, owner, target)
    if found.is_odd:
        owner, found = view, Window((integer(0),) * len(view.type.shape), (), (), (), ())
        shape = [n if isinstance(n, int) else None for n in view.type.shape]
    else:
        shape = [int(n.value) if isinstance(n, Const) else None for n in found.extents]
    own = (1,) * (len(shape) - len(given.type.shape)) + given.type.shape
    sizes = tuple(have if n is None else n for n, have in zip(shape, own, strict=False))
    if len(own) > len(shape):
        message = f"a window of {len(shape)} axes cannot take {given.type}"
        raise t.error(SubscriptError, target, message, help="give the tensor an index or a slice for each axis")
    loaded = w.named(w.do("tile.load", tensor=owner, offsets=found.offsets, shapes=sizes, clamp=True))
    assert isinstance(loaded.type, TileType)
    if isinstance(both.op, ast.MatMult) or given.type.shape != sizes or loaded.type.valid == given.type.valid == sizes:
        return loaded, given
    never = w.named(w.do("tile.lt", lhs=given, rhs=given))  # the first choice decides how far the result is valid
    as_far = w.named(w.do("tile.cast", x=never, target_type=loaded.type.dtype))
    return w.named(w.do("tile.where", condition=never, x=as_far, y=loaded)), given
