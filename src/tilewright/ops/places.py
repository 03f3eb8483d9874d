"""Places: the rows or elements of a tensor that a tile of indices stands for.

Along the first axis an index names an element of a vector, or all that lies at it in a tensor of more axes: a row.
Without an axis it counts single elements, along rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.core.expr import Expr
from tilewright.core.extents import product
from tilewright.core.region import PADDING, Array, Region, overlaps_itself, undefined_message
from tilewright.core.types import ScalarType, ShapedType, TileType, is_static, show_shape, static_shape
from tilewright.dtypes import BOOL, DataType, round_to
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    ExecutionError,
    NotStaticError,
    ShapeMismatchError,
)
from tilewright.ops.declare import INTEGERS
from tilewright.ops.families import shaped
from tilewright.ops.indices import check_elements, check_whole, inside
from tilewright.records import record

AXIS = "axis=0 takes rows, or elements of a vector; axis=None counts elements along rows"


def takes_rows(type_: ShapedType, axis: int | None) -> bool:
    """Return whether an index stands for a row, which is all that lies at it along the first axis."""
    return axis == 0 and len(type_.shape) > 1


def places_type(x: Expr, indices: Expr, axis: int | None, mask: Expr | None, given: Expr | None = None) -> TileType:
    """Return the type of what lies at some places; `given` are elements for them, whose extents are then theirs."""
    source, index = check_whole(x, "x"), shaped(indices)
    if isinstance(axis, bool) or axis not in (0, None):
        raise AttributeValueError(f"`axis` is 0 or None here, got {axis!r}", help=AXIS)
    if not source.shape:
        raise ShapeMismatchError(f"a tensor of one axis or more is needed, got {source}", blame=["x"])
    if index.dtype not in INTEGERS:
        help = "convert them: pl.cast(indices, pl.INT32)"
        raise DTypeMismatchError(f"`indices` must be integers, got {index.dtype}", blame=["indices"], help=help)
    shape, valid = static_shape(index.shape), index.valid
    if takes_rows(source, axis):
        count = _line(index)
        rest = _rest(source, given)
        shape, valid = (count, *rest), (product(index.valid), *rest)
    if mask is not None:
        _check_mask(shaped(mask), index)
    return TileType(shape, source.dtype, valid)


def _line(index: ShapedType) -> int:
    """Return how many indices stand in a line, whichever way it lies."""
    if sum(extent != 1 for extent in index.shape) > 1:
        message = f"rows are named by indices in a line, got {index}"
        raise ShapeMismatchError(message, blame=["indices"], help=f"pl.reshape them, or count elements: {AXIS}")
    return prod(static_shape(index.shape))


def _rest(source: ShapedType, given: Expr | None) -> tuple[int, ...]:
    """Return the extents of a row: the tensor's, or where those are not known, those of the rows that are given."""
    rest = source.shape[1:]
    if not is_static(rest) and given is not None and not isinstance(given.type, ScalarType):
        rest = shaped(given).shape[1:]
    if not is_static(rest):
        help = "give all axes but the tensor's first a fixed extent"
        raise NotStaticError(f"the rows of a tile have fixed extents, got {source}", blame=["x"], help=help)
    return static_shape(rest)


def _check_mask(mask: ShapedType, index: ShapedType) -> None:
    if mask.dtype != BOOL:
        help = "compare: mask=indices < n"
        raise DTypeMismatchError(f"`mask` must hold bool, got {mask.dtype}", blame=["mask"], help=help)
    if mask.shape != index.shape:
        shapes = f"{show_shape(mask.shape)} and {show_shape(index.shape)}"
        message = f"`mask` and `indices` need one shape, got {shapes}"
        raise ShapeMismatchError(message, blame=["mask", "indices"], help="each index is taken, or is not")


def check_given(value: Expr, name: str, x: Expr, there: TileType) -> TileType:
    """Return the type of what changes some places, from what is given for them: a number, or an element for each."""
    target = shaped(x)
    if isinstance(value.type, ScalarType):
        given = value.type.dtype
        if (given.is_float(), given.is_int()) != (target.dtype.is_float(), target.dtype.is_int()):
            help = f"convert: pl.cast({name}, pl.{target.dtype.symbol})"
            raise DTypeMismatchError(f"{given} cannot go into {target.dtype} elements", blame=[name], help=help)
        return there
    type_ = shaped(value)
    check_elements(type_, target, name, "x")
    if type_.shape != there.shape:
        message = f"`{name}` must be {show_shape(there.shape)} for these indices, got {type_}"
        raise ShapeMismatchError(message, blame=[name, "indices"], help=f"a row or an element for each index; {AXIS}")
    return TileType(there.shape, there.dtype, type_.valid)


@record
class Found:
    """Places while the interpreter runs."""

    numbers: tuple[Array, ...]
    """Where each lies along the axes that indices count."""
    picked: Array
    """Where among the given ones they stand: those that a mask leaves out are not among them."""
    window: tuple[slice, ...]
    """The part of a row that counts."""


def find(x: Region, indices: Region, axis: int | None, mask: Region | None, valid: Sequence[int]) -> Found:
    """Return the places of what is valid so far; ExecutionError names the first index that points at nothing."""
    by_row = axis == 0 and x.data.ndim > 1
    extents = tuple(valid[:1] if by_row else valid)
    index, picked = (_lying(region, by_row, extents, name) for region, name in ((indices, "indices"), (mask, "mask")))
    axes = x.data.shape[:1] if axis == 0 else x.data.shape
    known = inside(np.where(picked, index, 0), prod(axes), "indices") if picked.any() else np.zeros(0, np.intp)
    numbers = np.unravel_index(known[picked], axes) if picked.any() else tuple(known for _ in axes)
    return Found(tuple(numbers), picked, tuple(slice(0, extent) for extent in valid[1:]) if by_row else ())


def _lying(region: Region | None, by_row: bool, extents: tuple[int, ...], name: str) -> Array:
    if region is None:
        return np.ones(extents, bool)
    live = np.reshape(region.seen(), -1) if by_row else region.seen()
    if any(have < want for have, want in zip(live.shape, extents, strict=True)):
        raise ExecutionError(f"there is no valid element of `{name}` for all that is given")
    return live[tuple(slice(0, extent) for extent in extents)]


def changed_part(result: TileType, indices: Region, given: Any, by_row: bool) -> tuple[int, ...]:
    """Return how much counts: as much as is given or, of a number, all that is named."""
    if isinstance(given, Region):
        return given.valid
    return (prod(indices.valid), *result.shape[1:]) if by_row else indices.valid


def given_elements(given: Any, name: str, valid: tuple[int, ...], dtype: DataType, picked: Array) -> Array:
    """Return what is given for the places that are picked; ExecutionError where it is less than what counts."""
    if not isinstance(given, Region):
        return np.broadcast_to(round_to(np.asarray(given), dtype), valid)[picked]
    if any(have < want for have, want in zip(given.valid, valid, strict=True)):
        raise ExecutionError(f"there is no valid element of `{name}` for all that is given")
    return given.seen(tuple(slice(0, extent) for extent in valid))[picked]


def in_turn(target: Array, found: Found) -> Iterator[Array]:
    """Yield which places can change together, so that of several in one place each sees what those before it left."""
    count = found.numbers[0].size
    if overlaps_itself(target.shape, target.strides, target.itemsize):
        yield from np.arange(count)[:, None]
        return
    numbers: Any = np.ravel_multi_index(found.numbers, target.shape[: len(found.numbers)]) if count else np.zeros(0)
    order = np.argsort(numbers, kind="stable")
    ordered, at = numbers[order], np.arange(count)
    begins = np.concatenate([ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]])
    turn = at - np.maximum.accumulate(np.where(begins, at, 0)) if count else at
    by_turn = np.argsort(turn, kind="stable")
    yield from np.split(order[by_turn], np.cumsum(np.bincount(turn))[:-1])


def look(x: Region, places: tuple[Array | slice, ...]) -> Array:
    """Return what lies at some places; ExecutionError where nobody wrote it."""
    if x.shadow is not None and x.shadow[places].any():
        raise ExecutionError(undefined_message(x.origin), help=PADDING)
    return x.data[places]
