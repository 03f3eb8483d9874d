"""Bytes: a buffer's memory seen through another element type, shape and strides."""

from typing import Any, cast

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Index, Tensor
from tilewright.core.expr import Call, Expr
from tilewright.core.extents import as_shape, bounds
from tilewright.core.region import Region, whole
from tilewright.core.types import TensorType, show_shape, tensor
from tilewright.dtypes import DataType
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    ExecutionError,
    ShapeMismatchError,
)
from tilewright.ops.declare import ANY, TENSOR, op
from tilewright.ops.families import shaped
from tilewright.ops.windows import check_rank

__all__ = ["as_strided"]


_OUTSIDE = "a view does not lie inside its buffer"
_TO_MEND = "begin elsewhere in it, or take less of it; where {} is an argument, a larger one does too"


def outside_said(view: Call) -> str:
    """Return what is said of a view that does not lie inside its buffer when the program runs."""
    name = f"`{view.args[0]}`"
    return f"{_OUTSIDE}, {name}\n{_TO_MEND.format(name)}"


def outside_exactly(view: Call) -> str:
    """Return the same with places for its first byte, for the one behind its last and for how many there are."""
    return f"{_OUTSIDE}, `{view.args[0]}`: bytes {{0}} to {{1}} of {{2}}"


def _viewed(
    buffer: Expr, shape: tuple[Expr, ...], strides: tuple[Expr, ...], offset: Expr, dtype: DataType
) -> TensorType:
    source = shaped(buffer)
    assert isinstance(source, TensorType)
    if len(source.shape) != 1 or source.valid != source.shape:
        raise ShapeMismatchError(f"only a 1-D buffer can be seen as bytes, got {source}", blame=["buffer"])
    if source.dtype.bits < 8 or dtype.bits < 8:
        raise DTypeMismatchError(f"{source.dtype} elements have no bytes of their own as {dtype}", blame=["buffer"])
    check_rank(strides, len(shape), "strides", "view")
    for name, given in (("shape", shape), ("strides", strides)):
        if any((reach := bounds(e)) is not None and reach[1] < 0 for e in given):
            raise AttributeValueError(f"`{name}` must not be negative, got {show_shape(as_shape(given))}", blame=[name])
    return tensor(as_shape(shape), dtype)


def _view(
    result: TensorType, buffer: Region, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: DataType
) -> Region:
    size = dtype.get_byte()
    if any(n < 0 for n in (*shape, *strides)):
        raise ExecutionError(f"a view of {list(shape)} with strides {list(strides)} at byte {offset} cannot be")
    end = offset + (sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1) * size if all(shape) else offset
    if offset < 0 or end > buffer.data.nbytes:
        message = f"{_OUTSIDE}, `buffer`: bytes {offset} to {end} of {buffer.data.nbytes}"
        error = ExecutionError(message, help=_TO_MEND.format("`buffer`"))
        error.blame = ("buffer",)
        raise error
    if not all(shape):
        return whole(np.empty(shape, dtype.numpy))
    buffer.brighten(buffer.window)  # which bytes were written is not followed through other types
    steps = tuple(stride * size if n > 1 else 0 for n, stride in zip(shape, strides, strict=True))  # one goes nowhere
    memory = cast("Any", buffer.data).view(np.uint8)
    return whole(np.ndarray(shape, dtype.numpy, memory, offset, steps))


@op(
    kinds=TENSOR, infer=_viewed, evaluate=_view, control_plane=True, accepts=ANY, alias="buffer", turns=True,
    example="flat = pl.reshape(x, [512])\n"
    "turned = pl.tensor.as_strided(flat, [16, 8], [1, 16], offset=128, dtype=pl.FP32)\n"
    "out = pl.store(pl.load(turned, [0, 0], [16, 8]), [0, 0], out)",
)  # fmt: skip
def as_strided(buffer: Tensor, shape: Extents, strides: Extents, offset: Index, dtype: DataType) -> Tensor:
    """Return the memory of a 1-D buffer from byte `offset` on as `dtype` elements, `strides` elements apart.

    The view may overlap itself and other views; it must lie inside the buffer, as the running program finds out.
    """
    ...
