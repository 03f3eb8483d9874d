"""Families: the type rule and the meaning that all ops of one shape share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar

from tilewright.arrays import np
from tilewright.core.expr import Const, Expr
from tilewright.core.op import Kind, Undefined, data_of
from tilewright.core.region import Array, Region, embed, exact, shaded
from tilewright.core.types import Extent, ScalarType, Shape, ShapedType, TensorType, TileType, show_shape, static_shape
from tilewright.dtypes import BOOL, FP32, INDEX, INT32, DataType, common, objection, promote, round_to
from tilewright.errors import DTypeMismatchError, ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.source import UNKNOWN, Span

F = TypeVar("F", bound=Callable[..., Any])

Reference: TypeAlias = (
    Callable[[Array], Array] | Callable[[Array, Array], Array] | Callable[[Array, Array, Array], Array]
)
"""What an op computes from the elements of its operands."""


def shaped(value: Expr) -> ShapedType:
    """Return the type of an operand already known to be a tensor or tile."""
    assert isinstance(value.type, (TensorType, TileType))
    return value.type


def elementwise(
    *,
    reference: Reference,
    accepts: Collection[DataType] = NUMBERS,
    float_result: bool = False,
    chained: bool = False,
    promotes: bool = False,
    takes_numbers: bool = False,
    kinds: tuple[Kind, ...] = UNIFIED,
    ulp: float = 0,
    domain: tuple[float, float] = (-8.0, 8.0),
) -> Callable[[F], F]:
    """Declare an op that makes each element of the result from the same element of its operands.

    `reference` gets float64 arrays for floating-point operands and the integers themselves otherwise; what it returns
    is rounded once. `float_result` ops turn integers into fp32 first; `chained` ones apply it to the first two
    operands, then to that and the next one. Elements of several types meet by value, in those that say `promotes` as
    the rules of the PTO family have it.
    """
    accepted = frozenset(accepts)

    def declare(function: F) -> F:
        names = data_of(function)

        def infer(**operands: Any) -> ShapedType:
            values = {name: operands[name] for name in names if isinstance(operands[name], Expr)}
            dtype = elementwise_dtype(values, promote if promotes or float_result else common)
            if float_result and dtype.is_int():
                dtype = FP32
            check_dtype(dtype, accepted, list(values))
            return elementwise_type(values, dtype)

        def evaluate(result: ShapedType, **operands: Any) -> Region:
            values = [operands[name] for name in names if operands[name] is not None]
            while chained and len(values) > 2:
                values[:2] = [apply(reference, result.dtype, result.dtype, values[:2])]
            return apply(reference, result.dtype, result.dtype, values)

        return op(
            kinds=kinds, infer=infer, evaluate=evaluate, family="elementwise", reference=reference, accepts=accepted,
            chained=chained, takes_numbers=takes_numbers, ulp=ulp, domain=domain, undefined=Undefined.SPREADS,
        )(function)  # fmt: skip

    return declare


def elementwise_dtype(
    values: dict[str, Expr], join: Callable[[DataType, DataType], DataType | None] = promote
) -> DataType:
    """Return the element type that operands join in; a scalar never changes a tile's type."""
    shaped_types = [v.type for v in values.values() if isinstance(v.type, (TensorType, TileType))]
    if not shaped_types:
        raise OperandError(
            "a tile or tensor is needed among the operands", blame=list(values), help="use + - * / on scalars"
        )
    dtype = shaped_types[0].dtype
    for type_ in shaped_types[1:]:
        dtype = join(dtype, type_.dtype) or no_common(dtype, type_.dtype, list(values))
    for name, value in values.items():
        if isinstance(value.type, ScalarType):
            dtype = _with_scalar(dtype, name, value, isinstance(shaped_types[0], TileType))
    return dtype


def no_common(lhs: DataType, rhs: DataType, blame: list[str]) -> NoReturn:
    """Raise: of two types of integers one holds what is too large for the other, and that has a sign."""
    help = "convert one: pl.cast(..., pl.INT64) or pl.cast(..., pl.UINT64), which keep the bits; comparing is exact"
    raise DTypeMismatchError(f"no integers hold both {lhs} and {rhs}", blame=blame, help=help)


def _with_scalar(dtype: DataType, name: str, value: Expr, keeps: bool) -> DataType:
    assert isinstance(value.type, ScalarType)
    given = value.type.dtype
    is_number = isinstance(value, Const) and not objection(value.value, dtype)
    if dtype == BOOL and given != BOOL and (given.is_float() or not is_number):
        number = value.value if isinstance(value, Const) else f"a scalar of {given}"
        wider = FP32 if given.is_float() else INT32
        help = f"convert the mask, which then has ones and zeros: pl.cast(..., pl.{wider.symbol})"
        raise DTypeMismatchError(f"{number} cannot meet {dtype} elements", blame=[name], help=help)
    if given == INDEX and dtype.is_int() and dtype.bits >= 32:
        return dtype  # which holds what a program counts
    if (given == INDEX or (given.is_float() and dtype.is_int())) and not is_number:
        noun = "an index" if given == INDEX else f"a scalar of {given}"
        help = f"convert it: pl.cast({value}, pl.{dtype.symbol})"
        if given.is_float():
            help += f", or the elements: pl.cast(..., pl.{given.symbol})"
        raise DTypeMismatchError(f"{noun} cannot meet {dtype} elements", blame=[name], help=help)
    return dtype if keeps else promote(dtype, value.type.dtype)


def check_dtype(dtype: DataType, accepted: Collection[DataType], blame: list[str]) -> None:
    """Raise unless an op takes elements of `dtype`."""
    if dtype not in accepted:
        help = f"supported: {', '.join(sorted(t.name for t in accepted))}"
        help = _MASKS if dtype == BOOL else help
        raise DTypeMismatchError(f"{dtype} elements are not supported here", blame=blame, help=help)


_MASKS = "masks are joined with &, |, ^ and ~, and chosen by with pl.where; pl.cast(mask, pl.INT32) has ones and zeros"


def elementwise_type(values: dict[str, Expr], dtype: DataType) -> ShapedType:
    """Return the broadcast result type; the first operand that spans an axis decides how much of it is valid."""
    types = {name: v.type for name, v in values.items() if isinstance(v.type, (TensorType, TileType))}
    first = next(iter(types.values()))
    shape, valid = first.shape, first.valid
    for type_ in list(types.values())[1:]:
        merged = broadcast(shape, valid, type_.shape, type_.valid)
        if merged is None:
            shapes = " and ".join(show_shape(t.shape) for t in types.values())
            raise ShapeMismatchError(f"operands need shapes that broadcast, got {shapes}", blame=list(types))
        shape, valid = merged
    return computed(first, shape, valid, dtype)


def computed(like: ShapedType, shape: Shape, valid: Shape, dtype: DataType) -> ShapedType:
    """Return the type of a value made by vector arithmetic, which puts tiles into vector memory."""
    if isinstance(like, TileType):
        return TileType(static_shape(shape), dtype, valid)
    return TensorType(shape, dtype, valid, like.layout)


def broadcast(shape: Shape, valid: Shape, other: Shape, other_valid: Shape) -> tuple[Shape, Shape] | None:
    """Return the NumPy-style common shape and its valid part, or None when the shapes do not fit."""
    rank = max(len(shape), len(other))
    pad = rank - len(shape), rank - len(other)
    left = list(zip((1,) * pad[0] + shape, (1,) * pad[0] + valid, strict=True))
    right = list(zip((1,) * pad[1] + other, (1,) * pad[1] + other_valid, strict=True))
    merged: list[tuple[Extent, Extent]] = []
    for (a, a_valid), (b, b_valid) in zip(left, right, strict=True):
        if a == 1 and b != 1:
            merged.append((b, b_valid))
        elif b == 1 or a == b:
            merged.append((a, a_valid))
        elif isinstance(a, int) and isinstance(b, int):
            return None
        else:
            merged.append((a if isinstance(a, int) else b, a_valid))
    return tuple(m[0] for m in merged), tuple(m[1] for m in merged)


def apply(
    reference: Reference,
    compute: DataType | Sequence[DataType],
    result: DataType,
    values: list[Any],
    unread: Sequence[Region] = (),
) -> Region:
    """Return `reference` over the valid elements of `values`, computed from `compute` and rounded to `result`.

    `compute` is one type for all of them or one for each. Of `unread` regions only the extents matter.
    """
    types = [compute] * len(values) if isinstance(compute, DataType) else compute
    regions = [value for value in values if isinstance(value, Region)]
    shape = common_shape(*(region.data.shape for region in regions))
    valid = broadcast_valid(regions)
    arrays = [value.data[_met(value, valid)] if isinstance(value, Region) else np.asarray(value) for value in values]
    meaning: Callable[..., Array] = reference
    with np.errstate(all="ignore"):
        live = meaning(*(exact(round_to(array, type_)) for array, type_ in zip(arrays, types, strict=True)))
    computed = embed(np.broadcast_to(live, valid), shape, result)
    read = [region for region in regions if not any(region is other for other in unread)]
    return shaded(computed, [region.shade(_met(region, valid)) for region in read], origin_of(read))


def origin_of(regions: Sequence[Region]) -> Span:
    """Return where elements of some regions became undefined, or an unknown place."""
    return next((region.origin for region in regions if region.origin.is_known and not region.is_defined), UNKNOWN)


MEETING = "pl.slice both to the same extents, or let one have an extent of 1"


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that some shapes broadcast to; ExecutionError where they have none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(str(list(shape)) for shape in shapes)
        raise ExecutionError(f"operands need shapes that broadcast, got {shown}", help=MEETING) from None


def broadcast_valid(regions: list[Region]) -> tuple[int, ...]:
    """Return the valid part of a broadcast, which the first region that spans an axis decides."""
    rank = max(region.data.ndim for region in regions)
    shapes = [(1,) * (rank - region.data.ndim) + region.data.shape for region in regions]
    valids = [(1,) * (rank - region.data.ndim) + region.valid for region in regions]
    return tuple(
        next((v[axis] for shape, v in zip(shapes, valids, strict=True) if shape[axis] != 1), valids[0][axis])
        for axis in range(rank)
    )


def _met(region: Region, valid: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the window of a region that a broadcast whose result is `valid` reads."""
    own = valid[len(valid) - region.data.ndim :]
    return tuple(slice(0, 1) if size == 1 else slice(0, v) for size, v in zip(region.data.shape, own, strict=True))


def look(regions: Sequence[Region]) -> None:
    """Raise ExecutionError where a broadcast of regions looks at undefined elements."""
    valid = broadcast_valid(list(regions))
    for region in regions if 0 not in valid else ():
        region.seen(_met(region, valid))
