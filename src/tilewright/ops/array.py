"""Arrays: a few scalars kept together on a core. Updating one gives a new array."""

from typing import Any

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.annotations import Array, Index, Number, Scalar
from tilewright.core.expr import Expr
from tilewright.core.extents import bounds
from tilewright.core.op import Kind
from tilewright.core.types import ArrayType, ScalarType
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, OutOfBoundsError
from tilewright.ops.declare import op

__all__ = ["create", "get_element", "update_element"]

ARRAY = (Kind.ARRAY,)
_EXAMPLE = (
    "arr = pl.array.create(4, pl.INT32)\narr = pl.array.update_element(arr, 2, 7)\nn = pl.array.get_element(arr, 2)"
)


def _created(extent: int, dtype: DataType) -> ArrayType:
    if extent <= 0:
        raise AttributeValueError(f"an array holds at least one element, got {extent}")
    if reason := dt.objection(extent, dt.INDEX):
        raise AttributeValueError(f"no array can have {dt.show_number(extent)} elements", help=reason)
    if dtype.is_float():
        raise DTypeMismatchError(f"arrays hold integers, bools and task ids, not {dtype}")
    return ArrayType(extent, dtype)


def _array(array: Expr, index: Expr) -> ArrayType:
    assert isinstance(array.type, ArrayType)
    reach = bounds(index)
    if reach and (reach[1] < 0 or reach[0] >= array.type.extent):
        raise OutOfBoundsError(f"index {index} lies outside 0 to {array.type.extent}", blame=["index"])
    return array.type


def _element_type(array: Expr, index: Expr) -> ScalarType:
    return ScalarType(_array(array, index).dtype)


def _updated_type(array: Expr, index: Expr, value: Expr) -> ArrayType:
    type_ = _array(array, index)
    assert isinstance(value.type, ScalarType)
    if value.type.dtype.is_int() != type_.dtype.is_int() or value.type.dtype.is_float():
        raise DTypeMismatchError(f"{value.type.dtype} cannot go into an array of {type_.dtype}", blame=["value"])
    return type_


def _zeros(result: ArrayType, extent: int, dtype: DataType) -> Any:
    return np.zeros(extent, dtype.numpy)


def _element(result: ScalarType, array: Any, index: int) -> Any:
    return array[_checked(array, index)].item()


def _checked(array: Any, index: int) -> int:
    if not 0 <= index < len(array):
        raise ExecutionError(f"index {index} lies outside 0 to {len(array)}")
    return index


def _updated(result: ArrayType, array: Any, index: int, value: Any) -> Any:
    changed = array.copy()
    changed[_checked(array, index)] = dt.round_scalar(value, result.dtype) if result.dtype != dt.TASK_ID else value
    return changed


@op(kinds=ARRAY, infer=_created, evaluate=_zeros, control_plane=True, example=_EXAMPLE)
def create(extent: int, dtype: DataType) -> Array:
    """Return an array of `extent` zeros."""
    ...


@op(kinds=ARRAY, infer=_element_type, evaluate=_element, control_plane=True, example=_EXAMPLE)
def get_element(array: Array, index: Index) -> Scalar:
    """Return one element."""
    ...


@op(kinds=ARRAY, infer=_updated_type, evaluate=_updated, control_plane=True, example=_EXAMPLE, alias="array")
def update_element(array: Array, index: Index, value: Number) -> Array:
    """Return the array with one element replaced."""
    ...
