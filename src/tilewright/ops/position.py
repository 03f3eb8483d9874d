"""Positions: where in a row or column the largest or the smallest element is. Only the valid part takes part."""

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import Tile, X
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import ShapedType, TensorType, TileType
from tilewright.dtypes import INT32, DataType
from tilewright.errors import ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import check_dtype, computed, shaped

__all__ = ["col_argmax", "col_argmin", "row_argmax", "row_argmin"]

F = TypeVar("F", bound=Callable[..., Any])

NOTHING = "there is no element to choose where nothing is valid along the axis"
_MADE = "pl.create_tile(shape, dtype) makes one: its elements do not matter"


def position(
    axis: int, combine: str, find: Callable[[Array, int], Array], start: Callable[[DataType], Any]
) -> Callable[[F], F]:
    """Declare an op that finds along `axis` the first element that folding with `combine` from `start` gives."""

    def infer(x: Expr, tmp_tile: Expr | None) -> ShapedType:
        type_ = shaped(x)
        check_dtype(type_.dtype, NUMBERS, ["x"])
        if len(type_.shape) < -axis:
            raise ShapeMismatchError(f"axis {axis} needs a rank of at least {-axis}, got {type_}", blame=["x"])
        if type_.valid[axis] == 0:
            help = "load at least one element along the axis"
            raise ShapeMismatchError(f"{NOTHING}, got {type_}", blame=["x"], help=help)
        _check_scratch(axis, type_, tmp_tile)
        keep = len(type_.shape) + axis
        shape = (*type_.shape[:keep], 1, *type_.shape[keep + 1 :])
        return computed(type_, shape, (*type_.valid[:keep], 1, *type_.valid[keep + 1 :]), INT32)

    def evaluate(result: ShapedType, x: Region, tmp_tile: Region | None) -> Region:
        if x.valid[axis] == 0:
            raise ExecutionError(NOTHING)
        shape = list(x.data.shape)
        shape[axis] = 1
        return embed(np.expand_dims(find(exact(x.seen()), axis), axis), shape, INT32)

    return op(
        kinds=UNIFIED, infer=infer, evaluate=evaluate, family="position", combine=combine, start=start,
        accepts=NUMBERS, scratch=_scratch, also={"x": ("tile", "input")}, example=_EXAMPLES[axis],
    )  # fmt: skip


_EXAMPLES = {
    -1: "where = pl.{name}(a, pl.create_tile([16, 32], dtype=pl.FP32))\n"
    "out = pl.store(pl.row_expand(a, pl.cast(where, pl.FP32)), [0, 0], out)",
    -2: "where = pl.{name}(a, pl.create_tile([16, 32], dtype=pl.FP32))\n"
    "out = pl.store(pl.col_expand(a, pl.cast(where, pl.FP32)), [0, 0], out)",
}


def _check_scratch(axis: int, source: ShapedType, scratch: Expr | None) -> None:
    if isinstance(source, TensorType):
        return  # a tile beside a tensor is refused wherever it is
    if scratch is None:
        raise OperandError("tiles need a scratch tile here: tmp_tile is missing", blame=["x"], help=_MADE)
    given = shaped(scratch)
    if axis == -1 and (given.shape, given.dtype) != (source.shape, source.dtype):
        needed = f"tmp_tile needs the shape and the elements of {source}"
        raise ShapeMismatchError(f"{needed}, got {given}", blame=["x", "tmp_tile"], help=_MADE)


def _scratch(x: Expr, **_: Any) -> TileType:
    type_ = shaped(x)
    assert isinstance(type_, TileType)
    return type_


def _largest(x: Array, axis: int) -> Array:
    return np.argmax(x, axis=axis)


def _smallest(x: Array, axis: int) -> Array:
    return np.argmin(x, axis=axis)


@position(-1, "maximum", _largest, start=lambda dtype: dtype.limits[0])
def row_argmax(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the column of the first largest element of each row, or of its first NaN, shaped [..., M, 1].

    Tiles bring a scratch tile of the same shape and type along, tensors none.
    """
    ...


@position(-1, "minimum", _smallest, start=lambda dtype: dtype.limits[1])
def row_argmin(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the column of the first smallest element of each row, or of its first NaN, shaped [..., M, 1].

    Tiles bring a scratch tile of the same shape and type along, tensors none.
    """
    ...


@position(-2, "maximum", _largest, start=lambda dtype: dtype.limits[0])
def col_argmax(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the row of the first largest element of each column, or of its first NaN, shaped [..., 1, N].

    Tiles bring any scratch tile along, tensors none.
    """
    ...


@position(-2, "minimum", _smallest, start=lambda dtype: dtype.limits[1])
def col_argmin(x: X, tmp_tile: Tile | None = None) -> X:
    """Return the row of the first smallest element of each column, or of its first NaN, shaped [..., 1, N].

    Tiles bring any scratch tile along, tensors none.
    """
    ...
