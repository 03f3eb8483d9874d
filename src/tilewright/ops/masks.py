"""Masks: tiles and tensors of bools, what makes them and what is chosen by them."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import Number, X
from tilewright.core.elsewhere import called
from tilewright.core.expr import Const, Expr
from tilewright.core.op import ElementTypes, Undefined, data_of
from tilewright.core.region import Array, Region
from tilewright.core.types import ScalarType, ShapedType, TensorType, TileType
from tilewright.dtypes import BOOL, FP32, INDEX, INT32, INT64, UINT64, DataType, meet, objection, promote
from tilewright.errors import DTypeMismatchError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import Reference, apply, check_dtype, elementwise_dtype, elementwise_type, shaped

__all__ = ["eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "lt", "ne", "where"]

F = TypeVar("F", bound=Callable[..., Any])

ELEMENTS = NUMBERS | {BOOL}


def test(reference: Reference) -> Callable[[F], F]:
    """Declare an op that makes a bool of each element, or of each pair of elements."""

    def declare(function: F) -> F:
        names = data_of(function)

        def infer(**operands: Any) -> ShapedType:
            values: dict[str, Expr] = {name: operands[name] for name in names}
            _check_meeting(values)
            return elementwise_type(values, BOOL)

        def evaluate(result: ShapedType, **operands: Any) -> Region:
            values = [operands[name] for name in names]
            return apply(reference, running_types(compared, BOOL, values), BOOL, values)

        return op(
            kinds=UNIFIED, infer=infer, evaluate=evaluate, family="elementwise", reference=reference,
            elements=compared, accepts=ELEMENTS, undefined=Undefined.SPREADS,
        )(function)  # fmt: skip

    return declare


def compared(result: DataType, given: Sequence[DataType | ScalarType]) -> tuple[DataType, ...]:
    """Return the type that operands are compared in: one that holds the integers of both; floats win over those.

    A scalar of floats takes the type of the elements it meets.
    """
    met = reduce(_common, [dtype for dtype in given if isinstance(dtype, DataType)])
    scalars = [type_.dtype for type_ in given if isinstance(type_, ScalarType)]
    if met.is_int():
        met = reduce(_common, [dtype for dtype in scalars if dtype.is_int()], met)
    return (met,) * len(given)


def _common(lhs: DataType, rhs: DataType) -> DataType:
    """Return the type that two meet in: that of the floats, one that holds both integers, or the only one left."""
    return meet(lhs, rhs) or (UINT64 if lhs.is_int() and rhs.is_int() else promote(lhs, rhs))


def running_types(elements: ElementTypes, result: DataType, values: Sequence[Any]) -> tuple[DataType, ...]:
    """Return the types that an op computes with running values in; a number is one of the widest scalars."""
    scalars = ScalarType(INT64), ScalarType(FP32)
    return elements(result, [v.dtype if isinstance(v, Region) else scalars[isinstance(v, float)] for v in values])


def _check_meeting(values: dict[str, Expr]) -> None:
    """Raise unless there is a type to compare operands in: a scalar fits the elements, uint64 meets no sign."""
    types = [v.type.dtype for v in values.values() if isinstance(v.type, (TensorType, TileType))]
    if not types:
        elementwise_dtype(values)
    for dtype in types:
        check_dtype(dtype, ELEMENTS, list(values))
    met = reduce(_common, types)
    for name, value in values.items():
        if isinstance(value.type, ScalarType) and not _is_held(value, met):
            types.append(_beside(met, name, value))
    integers = [dtype for dtype in types if dtype.is_int()]
    for dtype in integers[1:]:
        if met.is_int() and meet(integers[0], dtype) is None:
            message = f"no integers hold both {integers[0]} and {dtype}, so these do not compare"
            help = "convert one of them: pl.cast(..., pl.INT64)"
            raise DTypeMismatchError(message, blame=list(values), help=help)


def _is_held(value: Expr, dtype: DataType) -> bool:
    return isinstance(value, Const) and not objection(value.value, dtype)


def _beside(met: DataType, name: str, value: Expr) -> DataType:
    """Return the type of a running scalar that is compared with elements."""
    assert isinstance(value.type, ScalarType)
    given = value.type.dtype
    if met.is_float() == given.is_float() and (given == BOOL) == (met == BOOL):
        return given
    help = f"convert it: pl.cast({value}, pl.{met.symbol})"
    raise DTypeMismatchError(f"a scalar of {given} does not compare with {met} elements", blame=[name], help=help)


def _where_type(condition: Expr, x: Expr, y: Expr) -> ShapedType:
    mask = shaped(condition)
    if mask.dtype != BOOL:
        message = f"where chooses by a mask of {BOOL} elements, got {mask}"
        raise DTypeMismatchError(message, blame=["condition"], help=_MASKS)
    values = {"x": x, "y": y}
    is_shaped = any(isinstance(v.type, (TensorType, TileType)) for v in values.values())
    dtype = elementwise_dtype(values) if is_shaped else _of_scalars(values)
    check_dtype(dtype, ELEMENTS, list(values))
    return elementwise_type({**values, "condition": condition}, dtype)


def _of_scalars(values: dict[str, Expr]) -> DataType:
    """Return the type of elements that are one of two numbers: a known one takes that of one that is not."""
    running = [_own(value) for value in values.values() if not isinstance(value, Const)]
    if running:
        met = reduce(_common, running)
        if all(_is_held(value, met) for value in values.values() if isinstance(value, Const)):
            return met
    return reduce(_common, map(_own, values.values()))


def _own(value: Expr) -> DataType:
    """Return the element type that a number has for itself: fp32 or int32 where it is known."""
    assert isinstance(value.type, ScalarType)
    dtype = value.type.dtype
    if isinstance(value, Const) and dtype != BOOL:
        return FP32 if dtype.is_float() else INT32 if _is_held(value, INT32) else INT64
    return INT64 if dtype == INDEX else dtype


def chosen(result: DataType, given: Sequence[DataType | ScalarType]) -> tuple[DataType, ...]:
    """Return the types that a choice is made in: bools decide, and elements of the result are chosen."""
    return (*(result for _ in given[1:]), BOOL)


def _choose(x: Array, y: Array, condition: Array) -> Array:
    return np.where(condition, x, y)


def _where(result: ShapedType, condition: Region, x: Any, y: Any) -> Region:
    values = [x, y, condition]
    return apply(_choose, chosen(result.dtype, [BOOL] * len(values)), result.dtype, values)


_MASKS = "compare first, for example pl.where(x > 0, x, 0.0); join masks with &, | and ~"


@test(lambda lhs, rhs: np.less(lhs, rhs))
def lt(lhs: X | Number, rhs: X | Number) -> X:
    """Return a mask that is True where the first of each pair of elements is less; also written `lhs < rhs`.

    Elements of two integer types are compared as the numbers they are, and integers beside floats as floats.
    """
    ...


@test(lambda lhs, rhs: np.less_equal(lhs, rhs))
def le(lhs: X | Number, rhs: X | Number) -> X:
    """Return a mask that is True where the first of each pair of elements is not more; also written `lhs <= rhs`."""
    ...


@test(lambda lhs, rhs: np.greater(lhs, rhs))
def gt(lhs: X | Number, rhs: X | Number) -> X:
    """Return a mask that is True where the first of each pair of elements is more; also written `lhs > rhs`."""
    ...


@test(lambda lhs, rhs: np.greater_equal(lhs, rhs))
def ge(lhs: X | Number, rhs: X | Number) -> X:
    """Return a mask that is True where the first of each pair of elements is not less; also written `lhs >= rhs`."""
    ...


@test(lambda lhs, rhs: np.equal(lhs, rhs))
def eq(lhs: X | Number, rhs: X | Number) -> X:
    """Return a mask that is True where the elements of a pair are equal, and NaN never; also written `lhs == rhs`."""
    ...


@test(lambda lhs, rhs: np.not_equal(lhs, rhs))
def ne(lhs: X | Number, rhs: X | Number) -> X:
    """Return a mask that is True where the elements of a pair differ, and NaN always; also written `lhs != rhs`."""
    ...


@called("numpy torch")
@test(lambda x: np.isnan(x))
def isnan(x: X) -> X:
    """Return a mask that is True where an element is NaN."""
    ...


@called("numpy torch")
@test(lambda x: np.isinf(x))
def isinf(x: X) -> X:
    """Return a mask that is True where an element is infinite, of either sign."""
    ...


@called("numpy torch")
@test(lambda x: np.isfinite(x))
def isfinite(x: X) -> X:
    """Return a mask that is True where an element is neither infinite nor NaN."""
    ...


@called("numpy torch triton")
@op(
    kinds=UNIFIED, infer=_where_type, evaluate=_where, family="mapped", reference=_choose, elements=chosen,
    accepts=ELEMENTS, undefined=Undefined.SPREADS, hints={"condition": _MASKS}, follows=("condition",),
    example="out = pl.store(pl.where((a > b) & (a < 1.5), a, 0.0), [0, 0], out)",
)  # fmt: skip
def where(condition: X, x: X | Number, y: X | Number) -> X:
    """Return elements of `x` where a mask is True, of `y` elsewhere; all three broadcast.

    Both may be numbers: floats make fp32, integers int32. The result is valid where `x` is, or `y` where that is a
    number, and an element that is not chosen has to hold data all the same.
    """
    ...
