"""Reductions: rows and columns folded to one element each. Only the valid part takes part.

A sum is rounded once, as far as its op's accuracy goes. Columns of fp16 are the exception: their sums round after every
addition, from the first row down, or with a scratch tile in pairs of neighbours, then pairs of those, and so on.
"""

from collections.abc import Callable, Collection
from functools import reduce
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import Tile, X
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import ShapedType, TensorType, show_shape
from tilewright.dtypes import FP16, DataType
from tilewright.errors import ShapeMismatchError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import check_dtype, computed, shaped

__all__ = [
    "col_max", "col_min", "col_prod", "col_sum", "row_max", "row_min", "row_prod", "row_sum",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def reduction(
    axis: int, combine: str, start: Callable[[DataType], Any], ulp: float = 0, stepwise: Collection[DataType] = ()
) -> Callable[[F], F]:
    """Declare an op that folds `axis` with the NumPy function `combine`; `start` is what folding nothing gives.

    Elements of the `stepwise` types are rounded after every step.
    """

    def infer(x: Expr, tmp_tile: Expr | None) -> ShapedType:
        type_ = shaped(x)
        check_dtype(type_.dtype, NUMBERS, ["x"])
        if len(type_.shape) < -axis:
            raise ShapeMismatchError(f"folding axis {axis} needs a rank of at least {-axis}, got {type_}", blame=["x"])
        if tmp_tile is not None:
            _check_scratch(type_, shaped(tmp_tile))
        keep = len(type_.shape) + axis
        shape = (*type_.shape[:keep], 1, *type_.shape[keep + 1 :])
        return computed(type_, shape, (*type_.valid[:keep], 1, *type_.valid[keep + 1 :]), type_.dtype)

    def evaluate(result: ShapedType, x: Region, tmp_tile: Region | None) -> Region:
        with np.errstate(all="ignore"):
            if result.dtype in stepwise:
                live = _stepwise(combine, x.seen(), axis, start(result.dtype), in_pairs=tmp_tile is not None)
            else:
                live = _folded(combine, exact(x.seen()), axis, start(result.dtype))
        shape = list(x.data.shape)
        shape[axis] = 1
        return embed(live, shape, result.dtype)

    return op(
        kinds=UNIFIED, infer=infer, evaluate=evaluate, family="reduction", combine=combine, start=start,
        stepwise=stepwise, accepts=NUMBERS, ulp=ulp,
    )  # fmt: skip


def _check_scratch(source: ShapedType, scratch: ShapedType) -> None:
    fits = scratch.dtype == source.dtype and len(scratch.shape) == len(source.shape)
    pairs = zip(scratch.shape, source.shape, strict=False)
    if isinstance(source, TensorType) or not fits or not all(_at_least(a, b) for a, b in pairs):
        raise ShapeMismatchError(
            f"tmp_tile needs {source.dtype} elements and the input's {show_shape(source.shape)} or more, got {scratch}",
            blame=["x", "tmp_tile"],
            help="leave tmp_tile out: it is never needed here",
        )


def _at_least(a: object, b: object) -> bool:
    return not (isinstance(a, int) and isinstance(b, int)) or a >= b


def _folded(combine: str, x: Array, axis: int, start: Any) -> Array:
    return getattr(np, combine).reduce(x, axis=axis, keepdims=True, dtype=x.dtype, initial=start)


def _stepwise(combine: str, x: Array, axis: int, start: Any, in_pairs: bool) -> Array:
    """Return a folding that rounds after every step: from the first element on, or neighbours first."""
    fold: Callable[[Array, Array], Array] = getattr(np, combine)
    rows: list[Array] = [*np.moveaxis(x, axis, 0)]
    nothing = np.full(np.delete(x.shape, axis), start, x.dtype)
    return np.expand_dims(_in_pairs(fold, rows, nothing) if in_pairs else reduce(fold, rows, nothing), axis)


def _in_pairs(fold: Callable[[Array, Array], Array], rows: list[Array], nothing: Array) -> Array:
    while len(rows) > 1:
        last = rows[-1] if len(rows) % 2 else None
        rows = [fold(a, b) for a, b in zip(rows[::2], rows[1::2], strict=False)]
        rows[0] = rows[0] if last is None else fold(rows[0], last)
    return rows[0] if rows else nothing


@reduction(-1, "add", start=lambda dtype: 0, ulp=4)
def row_sum(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the sum of each row, shaped [..., M, 1]; no scratch tile is needed."""
    ...


@reduction(-1, "maximum", start=lambda dtype: dtype.limits[0])
def row_max(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the largest element of each row, shaped [..., M, 1]; no scratch tile is needed.

    Of zeros of both signs it is either.
    """
    ...


@reduction(-1, "minimum", start=lambda dtype: dtype.limits[1])
def row_min(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the smallest element of each row, shaped [..., M, 1]; no scratch tile is needed.

    Of zeros of both signs it is either.
    """
    ...


@reduction(-1, "multiply", start=lambda dtype: 1, ulp=8)
def row_prod(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the product of each row, shaped [..., M, 1]; no scratch tile is needed.

    Products of some elements may leave the range of floats before all do.
    """
    ...


@reduction(-2, "add", start=lambda dtype: 0, ulp=4, stepwise=(FP16,))
def col_sum(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the sum of each column, shaped [..., 1, N]; no scratch tile is needed.

    In fp16 every addition rounds: from the first row down, or with a scratch tile in pairs of neighbouring rows, then
    in pairs of those sums, an odd last row being added to the first sum.
    """
    ...


@reduction(-2, "maximum", start=lambda dtype: dtype.limits[0])
def col_max(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the largest element of each column, shaped [..., 1, N]; no scratch tile is needed."""
    ...


@reduction(-2, "minimum", start=lambda dtype: dtype.limits[1])
def col_min(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the smallest element of each column, shaped [..., 1, N]; no scratch tile is needed."""
    ...


@reduction(-2, "multiply", start=lambda dtype: 1, ulp=8)
def col_prod(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the product of each column, shaped [..., 1, N]; no scratch tile is needed.

    Products of some elements may leave the range of floats before all do.
    """
    ...
