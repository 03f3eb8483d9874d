"""Products with vectors: `@` takes one for a row on its left, for a column on its right, and drops that axis again."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tilewright.core.expr import Call, Expr
from tilewright.core.types import TileType
from tilewright.errors import ShapeMismatchError
from tilewright.frontend.derived import Writer
from tilewright.frontend.operand_types import is_vector
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.axes import dropped
from tilewright.ops.derived import extents, on
from tilewright.ops.families import shaped


def vector_product(
    t: Translator, lhs: Expr, rhs: Expr, node: ast.BinOp, multiply: Callable[[Expr, Expr], Expr]
) -> Expr:
    """Return the product of a matrix and a vector, a vector, or of two vectors, a number, by that of matrices."""
    _check_inner(t, lhs, rhs, node)
    w = Writer(t, node)
    gone = (*((-2,) if is_vector(lhs) else ()), *((-1,) if is_vector(rhs) else ()))
    row = _matrix(w, lhs, 0) if is_vector(lhs) else lhs
    column = _matrix(w, rhs, 1) if is_vector(rhs) else rhs
    return dropped(w, w.named(multiply(row, column)), gone, False)


def _check_inner(t: Translator, lhs: Expr, rhs: Expr, node: ast.BinOp) -> None:
    """Raise where a vector is known to be longer or shorter than what it meets."""
    inner = shaped(lhs).shape[-1], shaped(rhs).shape[-1 if is_vector(rhs) else -2]
    if all(isinstance(extent, int) for extent in inner) and inner[0] != inner[1]:
        message = f"a product needs equal inner sizes, got {inner[0]} in {lhs.type} and {inner[1]} in {rhs.type}"
        raise t.error(ShapeMismatchError, node, message, help="`a @ v` meets the columns of a, `v @ a` its rows")


def added_vector(
    t: Translator, acc: Expr, product: Call, node: ast.BinOp, add: Callable[[Expr, Value], Expr | None]
) -> Expr | None:
    """Return a vector plus a product with a vector, as matrices are added; None where that is no such sum."""
    matrix = product.args[0]
    sum_, own, whole = acc.type, product.type, matrix.type
    if not isinstance(sum_, TileType) or not isinstance(own, TileType) or not isinstance(whole, TileType):
        return None
    if (sum_.shape, sum_.dtype) != (own.shape, own.dtype):
        return None
    w = Writer(t, node)
    added = add(w.named(w.do("tile.reshape", x=acc, shape=whole.shape)), matrix)
    return None if added is None else w.do("tile.reshape", x=w.named(added), shape=sum_.shape)


def _matrix(w: Writer, vector: Expr, axis: int) -> Expr:
    """Return a vector as a matrix with one element along an axis."""
    (extent,) = extents(w, vector)
    return w.named(w.do(f"{on(vector)}.reshape", x=vector, shape=(1, extent) if axis == 0 else (extent, 1)))
