"""Indices: what gathers and scatters are told to take or to put, and the mistakes that can be made with that."""

from collections.abc import Collection
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import MaskPattern
from tilewright.core.expr import Expr
from tilewright.core.region import Array
from tilewright.core.types import Extent, Shape, ShapedType, TensorType, show_shape
from tilewright.dtypes import FP16, FP32, INT16, INT32, DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.native.context import INDEX
from tilewright.ops.families import check_dtype, shaped

PICKED = frozenset((FP16, FP32, INT16, INT32))
"""The element types that are gathered one by one, and compared."""

INSIDE = "an index counts from 0 and is less than the extent it points into"


def outside(name: str) -> str:
    """Return what is wrong with an index that points at nothing, as a running program reports it."""
    return f"index {INDEX} in `{name}` lies outside what it points into\n{INSIDE}"


def inside(values: Array, extent: int, name: str) -> Array:
    """Return indices; ExecutionError names the first that points at nothing."""
    bad = (values < 0) | (values >= extent)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        message = f"index {values[place]} at {list(place)} of `{name}` lies outside 0 to {extent}"
        raise ExecutionError(message, help=INSIDE)
    return values.astype(np.intp)


def check_whole(value: Expr, name: str) -> ShapedType:
    """Return the type of an operand; ShapeMismatchError for a tensor of which only a part is valid."""
    type_ = shaped(value)
    if isinstance(type_, TensorType) and type_.valid != type_.shape:
        help = "pl.load gives partly valid tiles, and pl.slice a tensor that ends where the data does"
        raise ShapeMismatchError(f"tensors are taken as a whole here, got {type_}", blame=[name], help=help)
    return type_


def check_index(value: Expr, accepted: Collection[DataType], name: str) -> None:
    """Raise unless indices have one of some element types."""
    dtype = shaped(value).dtype
    if dtype not in accepted:
        names = " or ".join(sorted(t.name for t in accepted))
        help = f"convert them: pl.cast({name}, pl.{next(iter(accepted)).symbol})"
        raise DTypeMismatchError(f"`{name}` must hold {names} here, got {dtype}", blame=[name], help=help)


def check_picked(source: ShapedType, index: Expr, data: str, name: str) -> None:
    """Raise unless elements of a type can be gathered one by one with such indices."""
    check_dtype(source.dtype, PICKED, [data])
    check_index(index, (INT32, INT16) if source.dtype.bits == 16 else (INT32,), name)


def check_rank(type_: ShapedType, rank: int, name: str) -> None:
    """Raise unless an operand has some number of axes."""
    if len(type_.shape) != rank:
        help = "pl.reshape gives it another shape"
        raise ShapeMismatchError(f"`{name}` must be {rank}-D here, got {type_}", blame=[name], help=help)


def check_same(first: Shape, second: Shape, names: tuple[str, str]) -> None:
    """Raise where two shapes are known to differ."""
    if len(first) != len(second) or any(differ(a, b) for a, b in zip(first, second, strict=True)):
        shapes = f"{show_shape(first)} and {show_shape(second)}"
        raise ShapeMismatchError(
            f"`{names[0]}` and `{names[1]}` need one shape, got {shapes}",
            blame=names,
            help="each element comes with an index of its own",
        )


def check_elements(given: ShapedType, target: ShapedType, name: str, into: str) -> None:
    """Raise unless the elements of one operand are those of another."""
    if given.dtype != target.dtype:
        help = f"convert: pl.cast({name}, pl.{target.dtype.symbol})"
        message = f"{given.dtype} elements cannot go into {target.dtype}"
        raise DTypeMismatchError(message, blame=[into, name], help=help)


def differ(a: Extent, b: Extent) -> bool:
    """Return whether two extents are known to differ."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def exceeds(a: Extent, b: Extent) -> bool:
    """Return whether an extent is known to be larger than another."""
    return isinstance(a, int) and isinstance(b, int) and a > b


def axis_of(dim: int, rank: int) -> int:
    """Return an axis counted from the first; AttributeValueError for one that there is not."""
    if isinstance(dim, bool) or not -rank <= dim < rank:
        help = f"dim is one of 0 to {rank - 1}, or -1"
        raise AttributeValueError(f"axis {dim} of a {rank}-D value does not exist", help=help)
    return dim % rank


def pattern_of(mask_pattern: object) -> MaskPattern:
    """Return a mask pattern from itself or its number."""
    try:
        return MaskPattern(mask_pattern) if not isinstance(mask_pattern, bool) else MaskPattern(0)
    except ValueError:
        names = ", ".join(f"{m.name} ({m.value})" for m in MaskPattern)
        message = f"there is no mask pattern {mask_pattern!r}"
        raise AttributeValueError(message, help=f"pl.tile.MaskPattern has {names}") from None


def taken(extent: Any, pattern: MaskPattern) -> Any:
    """Return how many of the first so many columns a pattern takes; None for an extent that is not known."""
    return max(0, -((pattern.first - extent) // pattern.step)) if isinstance(extent, int) else None


def chosen(value: object, names: tuple[str, ...], option: str) -> str:
    """Return an option from its name or number; AttributeValueError for any other."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    if value in names:
        return str(value)
    known = ", ".join(f'"{name}" ({number})' for number, name in enumerate(names))
    raise AttributeValueError(f"`{option}` cannot be {value!r}", help=f"one of {known}")
