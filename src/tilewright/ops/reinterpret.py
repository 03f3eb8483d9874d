"""Reinterpretation: the bytes of a value as elements of another type."""

from math import prod
from typing import Any, cast

from tilewright.arrays import np
from tilewright.core.annotations import Extents, X
from tilewright.core.build import scalar
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Expr, integer
from tilewright.core.extents import as_extent, as_scalar, as_shape
from tilewright.core.foreign_names import called
from tilewright.core.region import Array, Region
from tilewright.core.types import (
    Extent,
    Shape,
    ShapedType,
    TensorType,
    TileType,
    is_static,
    reshaped,
    show_shape,
    static_shape,
)
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, ExecutionError, NotStaticError, ShapeMismatchError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import check_dtype, shaped

__all__ = ["reinterpret_view"]

RAGGED = "what is valid, or the distance between rows, is no whole number of the other elements"
STRIDED = "this view is strided: the bytes that are to be other elements are not one after the other"
PACK = "pl.load packs a window into a tile"


def adjacent_axis(type_: ShapedType) -> int:
    """Return the axis whose neighbours are adjacent: the last one, but for columns."""
    layout = type_.layout if isinstance(type_, TensorType) else TensorLayout.ND
    return _adjacent(isinstance(type_, TileType), type_.shape, layout)


def _adjacent(is_tile: bool, shape: Shape, layout: TensorLayout) -> int:
    is_column = is_tile and len(shape) > 1 and shape[-1] == 1 != shape[-2]
    return -2 if is_column or layout is TensorLayout.DN else -1


def _view_type(data: Expr, dtype: DataType, shape: tuple[Expr, ...] | None) -> ShapedType:
    source = shaped(data)
    check_dtype(source.dtype, NUMBERS, ["data"])
    check_dtype(dtype, NUMBERS, ["dtype"])
    if dtype == source.dtype or not source.shape:
        raise DTypeMismatchError(f"{source} cannot be seen as {dtype}", blame=["data"], help="give another dtype")
    axis = adjacent_axis(source)
    if dtype.get_byte() > source.dtype.get_byte() and not isinstance(source.shape[axis], int):
        raise NotStaticError(f"axis {axis} must be static to be seen as {dtype}, got {source}", blame=["data"])
    extents = _scaled(source.shape, axis, source.dtype, dtype)
    asked = extents if shape is None else as_shape(shape)
    if asked != extents:
        _check_bytes(source, asked, dtype)
        return reshaped(source, asked, asked, dtype)
    is_whole = source.valid == source.shape
    valid = extents if is_whole else _scaled(source.valid, axis, source.dtype, dtype)
    return reshaped(source, extents, valid, dtype)


def _scaled(box: Shape, axis: int, source: DataType, target: DataType) -> Shape:
    """Return extents in elements of another size."""
    extent, have, want = box[axis], source.get_byte(), target.get_byte()
    if isinstance(extent, int) and extent * have % want:
        raise ShapeMismatchError(
            f"{extent} {source} elements along axis {axis} are no whole number of {target} ones", blame=["data"]
        )
    scaled: Extent = None
    if isinstance(extent, int):
        scaled = extent * have // want
    elif extent is not None and have >= want:
        scaled = as_extent(scalar("mul", as_scalar(extent), integer(have // want)))
    result = list(box)
    result[axis] = scaled
    return tuple(result)


def _check_bytes(source: ShapedType, shape: Shape, dtype: DataType) -> None:
    """Raise unless a value may get a shape of its own in other elements."""
    if not is_static(shape) or not is_static(source.shape):
        raise NotStaticError("a shape in other elements must be static", blame=["shape"])
    if any(extent <= 0 for extent in static_shape(shape)):
        raise ShapeMismatchError(f"extents must be positive, got {show_shape(shape)}", blame=["shape"])
    counts = [prod(static_shape(box)) for box in (source.shape, shape)]
    if counts[0] * source.dtype.get_byte() != counts[1] * dtype.get_byte():
        raise ShapeMismatchError(
            f"{source} and {show_shape(shape)} of {dtype} hold different numbers of bytes", blame=["data", "shape"]
        )
    if source.valid != source.shape:
        raise ShapeMismatchError(
            f"only a wholly valid value gets a shape of its own in other elements, got {source}",
            blame=["data", "shape"],
            help="pl.fillpad makes all of it valid; without a shape its rows stay where they are",
        )


def _view(result: ShapedType, data: Region, dtype: DataType, shape: tuple[int, ...] | None) -> Region:
    is_tile = isinstance(result, TileType)
    axis = _adjacent(is_tile, data.data.shape, data.layout)
    extents = _counted(data.data.shape, axis, data.dtype, dtype)
    valid = _counted(data.valid, axis, data.dtype, dtype)
    if shape is not None and shape != extents:
        extents = valid = shape
        axis = None
    if is_tile:
        data.seen()
        flat: Any = np.reshape(np.ascontiguousarray(data.data), -1)
        return Region(np.reshape(flat.view(dtype.numpy), extents), valid).forgotten()
    data.brighten(data.window)  # which bytes were written is not followed through other types
    return Region(_packed(data.data, extents, dtype) if axis is None else _rows(data.data, axis, dtype), valid)


def _counted(box: tuple[int, ...], axis: int, source: DataType, target: DataType) -> tuple[int, ...]:
    count, rest = divmod(box[axis] * source.get_byte(), target.get_byte())
    if rest:
        raise ExecutionError(RAGGED, help=PACK)
    result = list(box)
    result[axis] = count
    return tuple(result)


def _packed(data: Array, shape: tuple[int, ...], dtype: DataType) -> Array:
    """Return the elements of a packed array as others, under a shape."""
    flat: Any = np.reshape(data, -1)
    if flat.size and not np.shares_memory(flat, data):
        raise ExecutionError(STRIDED, help=PACK)
    return np.reshape(flat.view(dtype.numpy), shape)


def _rows(data: Array, axis: int, dtype: DataType) -> Array:
    """Return the elements of each row as others, the rows where they are."""
    rows = np.moveaxis(data, axis, -1)
    if rows.shape[-1] > 1 and rows.strides[-1] != rows.itemsize:
        raise ExecutionError(STRIDED, help=PACK)
    if any(s % dtype.get_byte() for s, n in zip(rows.strides[:-1], rows.shape, strict=False) if n > 1):
        raise ExecutionError(RAGGED, help=PACK)
    return np.moveaxis(cast("Any", rows).view(dtype.numpy), -1, axis)


@called(numpy="ndarray.view")
@op(
    kinds=UNIFIED, infer=_view_type, evaluate=_view, control_plane=True, accepts=NUMBERS, alias="data",
    example="bits = pl.reinterpret_view(a, pl.INT32)\n"
    "flipped = pl.reinterpret_view(pl.xor(bits, -2147483648), pl.FP32)\nout = pl.store(flipped, [0, 0], out)",
)  # fmt: skip
def reinterpret_view(data: X, dtype: DataType, shape: Extents | None = None) -> X:
    """Return the bytes of a value as elements of another type, the lowest byte of each first.

    Rows hold as many elements more or fewer as those are smaller or larger; `shape` may say otherwise.
    """
    ...
