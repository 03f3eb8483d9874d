"""Masks: tiles and tensors of bools, what makes them and what is chosen by them."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import Number, X
from tilewright.core.build import call
from tilewright.core.expr import Const, Expr, constant
from tilewright.core.foreign_names import called
from tilewright.core.op import OPS, Undefined, data_of
from tilewright.core.region import Array, Region
from tilewright.core.types import ScalarType, ShapedType, TensorType, TileType
from tilewright.dtypes import BOOL, FP32, INDEX, INT32, INT64, UINT64, DataType, common, finite_limits, objection
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
            return evaluated(reference, BOOL, [operands[name] for name in names])

        def fold(lhs: Expr, rhs: Expr) -> Expr | None:
            return _within(function.__name__, lhs, rhs)

        is_pair = len(names) == 2
        return op(
            kinds=UNIFIED, infer=infer, evaluate=evaluate, family="elementwise", reference=reference,
            elements=compared, accepts=ELEMENTS, undefined=Undefined.SPREADS, fold=fold if is_pair else None,
            unheld=names if is_pair else (),
        )(function)  # fmt: skip

    return declare


def compared(result: DataType, given: Sequence[DataType | ScalarType]) -> tuple[DataType, ...]:
    """Return the types that operands are compared in, by value; a scalar of floats takes the type of the elements."""
    met = next(dtype for dtype in given if isinstance(dtype, DataType))
    types = [dtype if isinstance(dtype, DataType) else _beside(met, dtype.dtype) for dtype in given]
    return compared_in(*types) if len(types) == 2 else tuple(types)


def _beside(met: DataType, scalar: DataType) -> DataType:
    return scalar if met.is_int() and scalar.is_int() else met


def compared_in(lhs: DataType, rhs: DataType) -> tuple[DataType, DataType]:
    """Return the types that two are compared in: one that holds both, or 64 bits with a sign and without."""
    met = common(lhs, rhs)
    first, second = (met or (INT64 if side.is_signed_int() else UINT64) for side in (lhs, rhs))
    return first, second


def evaluated(reference: Reference, result: DataType, values: list[Any]) -> Region:
    """Return a comparison of running values; a number is one of the widest scalars."""
    types = compared(BOOL, [v.dtype if isinstance(v, Region) else ScalarType(_widest(v)) for v in values])
    meaning: Callable[..., Array] = reference

    def exactly(lhs: Array, rhs: Array) -> Array:
        return meaning(lhs.astype(object), rhs.astype(object)).astype(bool)

    return apply(exactly if len(set(types)) > 1 else reference, types, result, values)


def _widest(number: Any) -> DataType:
    kind = np.asarray(number).dtype.kind
    return FP32 if kind not in "biu" else UINT64 if int(number) > INT64.limits[1] else INT64


def _check_meeting(values: dict[str, Expr]) -> None:
    """Raise unless operands compare: a running scalar of floats needs floats, a condition bools."""
    types = [v.type.dtype for v in values.values() if isinstance(v.type, (TensorType, TileType))]
    if not types:
        elementwise_dtype(values)
    for dtype in types:
        check_dtype(dtype, ELEMENTS, list(values))
    for name, value in values.items():
        if not isinstance(value.type, ScalarType) or isinstance(value, Const):
            continue
        given, met = value.type.dtype, types[0]
        if met.is_float() != given.is_float() or (given == BOOL) != (met == BOOL):
            help = f"convert it: pl.cast({value}, pl.{met.symbol})"
            if given.is_float() and met.is_int():
                help = f"convert the elements: pl.cast(..., pl.{given.symbol})"
            message = f"a scalar of {given} does not compare with {met} elements"
            raise DTypeMismatchError(message, blame=[name], help=help)


def _is_held(value: Expr, dtype: DataType) -> bool:
    return isinstance(value, Const) and not objection(value.value, dtype)


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _within(name: str, lhs: Expr, rhs: Expr) -> Expr | None:
    """Return a comparison with a number that elements cannot hold as one with a number that they can."""
    if isinstance(lhs, Const):
        lhs, rhs, name = rhs, lhs, _MIRRORED[name]
    if not isinstance(rhs, Const) or _is_held(rhs, shaped(lhs).dtype):
        return None
    name, number = equivalent(name, rhs.value, shaped(lhs).dtype)
    return call(OPS[f"tile.{name}"].spec, {"lhs": lhs, "rhs": constant(number, shaped(lhs).dtype)})


def equivalent(name: str, number: float, dtype: DataType) -> tuple[str, float]:
    """Return a comparison that elements of a type answer as one with a number that is none of theirs."""
    low, high = finite_limits(dtype)
    if low <= number <= high and name not in ("eq", "ne"):
        return ("le" if name in ("lt", "le") else "gt"), math.floor(number)
    is_true = name == "ne" or (number > high and name in ("lt", "le")) or (number < low and name in ("gt", "ge"))
    if not dtype.is_float():
        return ("ge" if is_true else "lt"), low
    if name in ("eq", "ne"):
        return name, math.nan
    return (name[0] + "t" if is_true else name[0] + "e"), math.inf if number > 0 else -math.inf


def _where_type(condition: Expr, x: Expr, y: Expr) -> ShapedType:
    mask = shaped(condition)
    if mask.dtype != BOOL:
        message = f"where chooses by a mask of {BOOL} elements, got {mask}"
        raise DTypeMismatchError(message, blame=["condition"], help=_MASKS)
    values = {"x": x, "y": y}
    is_shaped = any(isinstance(v.type, (TensorType, TileType)) for v in values.values())
    dtype = elementwise_dtype(values, common) if is_shaped else _of_scalars(values)
    check_dtype(dtype, ELEMENTS, list(values))
    return elementwise_type({**values, "condition": condition}, dtype)


def _of_scalars(values: dict[str, Expr]) -> DataType:
    """Return the type of elements that are one of two numbers: a known one takes that of one that is not."""
    running = [own_type(value) for value in values.values() if not isinstance(value, Const)]
    if running:
        met = reduce(_joined, running)
        if all(_is_held(value, met) for value in values.values() if isinstance(value, Const)):
            return met
    return reduce(_joined, map(own_type, values.values()))


def _joined(lhs: DataType, rhs: DataType) -> DataType:
    return common(lhs, rhs) or UINT64


def own_type(value: Expr) -> DataType:
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
