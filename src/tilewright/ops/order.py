"""Order: elements along an axis sorted, with or without their places. Only the valid part takes part.

NaN is larger than every number, True than False, both zeros are equal, and equal elements stay in the order they
came in.
"""

from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Tile, X
from tilewright.core.expr import Const, Expr
from tilewright.core.foreign_names import called
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import ShapedType, TensorType, TileType, TupleType
from tilewright.dtypes import INT32, DataType
from tilewright.errors import AttributeValueError, ExecutionError, NotStaticError, ShapeMismatchError
from tilewright.ops.axes import COUNTED, one_axis
from tilewright.ops.declare import TILE, UNIFIED, op
from tilewright.ops.derived import Writing, derived, extents
from tilewright.ops.families import check_dtype, computed, shaped

__all__ = ["argsort", "row_topk", "sort", "topk"]

FEWER = "there are fewer valid elements along the axis than are asked for"


def _ordered(x: Expr, axis: Any, dtype: DataType) -> ShapedType:
    type_ = shaped(x)
    check_dtype(type_.dtype, COUNTED, ["x"])
    place = one_axis(x, axis)
    if isinstance(type_, TensorType) and not isinstance(type_.shape[place], int):
        help = "load it into a tile, which knows how much of it is valid"
        message = f"the extent along a sorted axis must be static, got {type_}"
        raise NotStaticError(message, blame=["x"], help=help)
    return computed(type_, type_.shape, type_.valid, dtype)


def _sort_type(x: Expr, axis: int, descending: bool) -> ShapedType:
    return _ordered(x, axis, shaped(x).dtype)


def _argsort_type(x: Expr, axis: int, descending: bool) -> ShapedType:
    return _ordered(x, axis, INT32)


def _order(x: Array, axis: int, descending: bool) -> Array:
    """Return the places of elements in order; of equal ones the first comes first either way."""
    values = exact(x)
    if not descending:
        return np.argsort(values, axis=axis, kind="stable")
    last: Any = x.shape[axis] - 1
    return last - np.flip(np.argsort(np.flip(values, axis), axis=axis, kind="stable"), axis)


def _sort(result: ShapedType, x: Region, axis: int, descending: bool) -> Region:
    live = x.seen()
    return embed(np.take_along_axis(live, _order(live, axis, descending), axis), x.data.shape, result.dtype)


def _argsort(result: ShapedType, x: Region, axis: int, descending: bool) -> Region:
    return embed(_order(x.seen(), axis, descending), x.data.shape, INT32)


def _check_count(k: Any, type_: ShapedType, axis: int) -> None:
    """Raise unless so many elements can be taken along an axis."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise AttributeValueError(
            f"k is a positive integer, got {k!r}", blame=["k"], help="k=8 asks for eight elements"
        )
    extent, valid = type_.shape[axis], type_.valid[axis]
    most = valid if isinstance(valid, int) else extent
    if isinstance(most, int) and k > most:
        raise ShapeMismatchError(f"{FEWER}: {k} of {type_}", blame=["k"], help=f"k is {most} at most here")


def _row_topk_type(x: Expr, k: int, largest: bool) -> TupleType:
    type_ = shaped(x)
    assert isinstance(type_, TileType)
    check_dtype(type_.dtype, COUNTED, ["x"])
    _check_count(k, type_, -1)
    shape, live = (*type_.shape[:-1], k), (*type_.valid[:-1], k)
    return TupleType((TileType(shape, type_.dtype, live), TileType(shape, INT32, live)))


def _row_topk(result: TupleType, x: Region, k: int, largest: bool) -> tuple[Region, Region]:
    if x.valid[-1] < k:
        raise ExecutionError(FEWER)
    live = x.seen()
    order = _order(live, -1, largest)[..., :k]
    shape = (*x.data.shape[:-1], k)
    return embed(np.take_along_axis(live, order, -1), shape, x.dtype), embed(order, shape, INT32)


def _topk(w: Writing, x: Expr, k: int, axis: int, largest: bool) -> Any:
    count: Any = k.value if isinstance(k, Const) else k
    place = one_axis(x, axis)
    _check_count(count, shaped(x), place)
    if isinstance(x.type, TensorType):
        return _first(w, x, count, place, largest)
    if place == -1:
        return w.do("tile.row_topk", x=x, k=count, largest=largest)
    turned = w.do("tile.transpose", x=x, axis1=place, axis2=-1)
    pair = w.parts(w.do("tile.row_topk", x=turned, k=count, largest=largest))
    return tuple(w.do("tile.transpose", x=part, axis1=place, axis2=-1) for part in pair)


def _first(w: Writing, x: Expr, k: Any, axis: int, largest: bool) -> tuple[Expr, ...]:
    """Return the first elements of a tensor in order, and their places."""
    shape = [*extents(w, x)]
    shape[axis] = k
    ordered = [w.do(f"tensor.{name}", x=x, axis=axis, descending=largest) for name in ("sort", "argsort")]
    return tuple(w.do("tensor.slice", x=each, shape=tuple(shape), offset=(0,) * len(shape)) for each in ordered)


_TAKEN = "best, places = pl.{name}(a, 8)\nout = pl.store(best + pl.cast(places, pl.FP32), [0, 0], out)"


@called("numpy torch triton")
@op(
    kinds=UNIFIED, infer=_sort_type, evaluate=_sort, accepts=COUNTED, family="order",
    example="out = pl.store(pl.sort(a, axis=-1), [0, 0], out)",
)  # fmt: skip
def sort(x: X, axis: int = -1, descending: bool = False) -> X:
    """Return the elements along an axis in order, equal ones as they came; NaN is the largest."""
    ...


@called("numpy torch")
@op(
    kinds=UNIFIED, infer=_argsort_type, evaluate=_argsort, accepts=COUNTED, family="order",
    example="out = pl.store(pl.cast(pl.argsort(a, axis=-1), pl.FP32), [0, 0], out)",
)  # fmt: skip
def argsort(x: X, axis: int = -1, descending: bool = False) -> X:
    """Return the places of the elements along an axis in their order, as int32; equal ones stay as they came."""
    ...


@op(kinds=TILE, infer=_row_topk_type, evaluate=_row_topk, accepts=COUNTED, family="order", example=_TAKEN)
def row_topk(x: Tile, k: int, largest: bool = True) -> tuple[Tile, Tile]:
    """Return the `k` largest or smallest elements of each row in order, and the columns they are in.

    Of equal elements the first comes first. Fewer valid elements than `k` are an error.
    """
    ...


@called("torch triton")
@derived(_topk, accepts=COUNTED, example=_TAKEN)
def topk(x: X, k: int, axis: int = -1, largest: bool = True) -> tuple[X, X]:
    """Return the `k` largest or smallest elements along an axis in order, and their places as int32.

    NaN is the largest, and of equal elements the first comes first. Fewer valid elements than `k` are an error.
    """
    ...
