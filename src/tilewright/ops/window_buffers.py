"""Window buffers: memory that a host function lays out on every rank, and the windows through which kernels see it."""

from typing import Any

from tilewright.core.annotations import Extents, Index, Scalar, Tensor
from tilewright.core.expr import Expr
from tilewright.core.extents import as_shape
from tilewright.core.op import Effect
from tilewright.core.types import ScalarType, TensorType, is_static, show_shape, static_shape
from tilewright.core.world import world
from tilewright.dtypes import INT64, UINT8, DataType
from tilewright.errors import ShapeMismatchError
from tilewright.ops.declare import ANY, op
from tilewright.ops.ranks import DISTRIBUTED, FAMILY, window_type


def nbytes(shape: tuple[int, ...], dtype: DataType) -> int:
    """Return how many bytes elements take, four-bit ones one each."""
    size = dtype.get_byte()
    for extent in shape:
        size *= extent
    return size


def _buffer_type(size: tuple[Expr, ...], dtype: DataType | None) -> TensorType:
    shape = as_shape(size)
    extent = nbytes(static_shape(shape), dtype or UINT8) if is_static(shape) else None
    if isinstance(extent, int) and extent <= 0:
        message = f"a window buffer has one byte or more, got {extent}"
        raise ShapeMismatchError(message, blame=["size"], help="the bytes of its largest window on one rank")
    return TensorType((extent,), UINT8, (extent,), is_window=True)


def _buffer(result: TensorType, size: tuple[int, ...], dtype: DataType | None) -> Any:
    return world().buffer(nbytes(size, dtype or UINT8))


def _window_type(buf: Expr, shape: tuple[Expr, ...], dtype: DataType) -> TensorType:
    held, extents = window_type(buf, "buf").shape[0], as_shape(shape)
    if is_static(extents) and isinstance(held, int) and nbytes(static_shape(extents), dtype) > held:
        needed = nbytes(static_shape(extents), dtype)
        message = f"a window of {show_shape(extents)} {dtype} takes {needed} bytes, and the buffer has {held}"
        raise ShapeMismatchError(message, blame=["shape"], help="make the buffer as large as its largest window")
    return TensorType(extents, dtype, extents, is_window=True)


def _window(result: TensorType, buf: Any, shape: tuple[int, ...], dtype: DataType) -> Any:
    return buf.window(shape, dtype)


def _size_type() -> ScalarType:
    return ScalarType(INT64)


def _size(result: ScalarType) -> int:
    return world().size()


@op(
    kinds=DISTRIBUTED, infer=_buffer_type, evaluate=_buffer, family=FAMILY, effect=Effect.ALLOCATE, control_plane=True,
    accepts=ANY, also={"size": ("shape",)},
)  # fmt: skip
def alloc_window_buffer(size: Index | Extents, *, dtype: DataType | None = None) -> Tensor:
    """Return a buffer of so many bytes, or for a shape of elements, on every rank; it is zero when the host begins."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_window_type, evaluate=_window, family=FAMILY, alias="buf", control_plane=True,
    accepts=ANY,
)  # fmt: skip
def window(buf: Tensor, shape: Extents, *, dtype: DataType) -> Tensor:
    """Return a window: the start of a buffer as elements of a shape, on each rank its own."""
    ...


@op(kinds=DISTRIBUTED, infer=_size_type, evaluate=_size, family=FAMILY, effect=Effect.READ, control_plane=True)
def world_size() -> Scalar:
    """Return how many ranks the host function runs on."""
    ...
