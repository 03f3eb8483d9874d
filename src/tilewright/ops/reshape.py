"""Reshapes: the same elements, in row-major order, under another shape.

Of a value that is valid in part only, the valid part has to be a box under the new shape as well. It is where axes of
one element come and go, and where the valid part is one run of elements that ends at the end of a row, a plane and so
on. How much only the running program knows is carried along: `Of(axis)` is as much as of an axis of the source.
"""

from collections.abc import Sequence
from itertools import takewhile
from math import prod
from typing import TypeAlias

from tilewright.arrays import np
from tilewright.core.annotations import Extents, X
from tilewright.core.expr import Expr
from tilewright.core.extents import as_shape
from tilewright.core.foreign_names import called
from tilewright.core.region import Region
from tilewright.core.types import Extent, Shape, ShapedType, TileType, is_static, reshaped, show_shape, static_shape
from tilewright.errors import ExecutionError, ShapeMismatchError
from tilewright.ops.declare import ANY, UNIFIED, op
from tilewright.ops.families import shaped
from tilewright.ops.windows import tile_shape
from tilewright.records import record

__all__ = ["reshape"]

FILL = "pl.fillpad(x) fills the rest of it with zeros, so that all of it is valid"
RESHAPED = "both shapes hold as many elements; pl.fillpad makes all of it valid, pl.load packs a window into a tile"
PARTLY = "only part of it holds real data"


@record
class Of:
    """As much as is valid of an axis of the source, so many times: rows may be split into several."""

    axis: int
    times: int = 1


Part: TypeAlias = tuple[int | Of, ...]
"""What is valid of a reshaped value."""


def carried(source: ShapedType, target: Sequence[int]) -> Part | None:
    """Return what is valid of a partly valid value under another shape, None where that is no box or nobody knows."""
    if not is_static(source.shape):
        return None
    shape, valid = static_shape(source.shape), source.valid
    if any(extent == 0 for extent in valid):
        return (0,) * len(target)
    axes = aligned(shape, target)
    if axes is not None and all(valid[axis] == 1 for axis in range(len(shape)) if axis not in axes):
        return tuple(1 if axis is None else _known(valid, axis) for axis in axes)
    return _prefix(shape, valid, target)


def _known(valid: Shape, axis: int) -> int | Of:
    extent = valid[axis]
    return extent if isinstance(extent, int) else Of(axis)


def aligned(shape: Sequence[Extent], target: Sequence[Extent]) -> list[int | None] | None:
    """Return the source's axis for each of the target's, None for one that is new, where only axes of one differ."""
    if None in (*shape, *target):
        return None
    axes: list[int | None] = []
    here = 0
    for extent in target:
        while here < len(shape) and shape[here] == 1 != extent:
            here += 1
        if here < len(shape) and shape[here] == extent:
            axes.append(here)
            here += 1
        elif extent == 1:
            axes.append(None)
        else:
            return None
    return axes if all(extent == 1 for extent in shape[here:]) else None


def _prefix(shape: Sequence[int], valid: Shape, target: Sequence[int]) -> Part | None:
    """Return what is valid of a value whose valid part is its first elements in row-major order."""
    free = len(list(takewhile(lambda extent: extent == 1, valid)))
    if free == len(shape) or valid[free + 1 :] != tuple(shape[free + 1 :]):
        return (1,) * len(target) if free == len(shape) else None
    count, volume = valid[free], prod(shape[free + 1 :])
    for axis, extent in enumerate(target):
        after = prod(target[axis + 1 :])
        if isinstance(count, int):
            rows, rest = divmod(count * volume, after)
            if not rest and rows <= extent:
                return (*(1,) * axis, rows, *target[axis + 1 :])
        elif volume % after == 0 and extent >= shape[free] * (volume // after):
            return (*(1,) * axis, Of(free, volume // after), *target[axis + 1 :])
    return None


def part_of(source: ShapedType, target: Shape) -> Part | None:
    """Return what is valid of a value under another shape, None where only the running program knows that it can be.

    ShapeMismatchError where it certainly cannot.
    """
    if source.valid == source.shape:
        return static_shape(target) if is_static(source.shape) and is_static(target) else None
    part = carried(source, static_shape(target)) if is_static(target) else None
    if part is None and (is_static(source.valid) or not _may_be_whole(source)):
        raise ShapeMismatchError(
            f"cannot reshape {source} to {show_shape(target)}: {PARTLY}",
            blame=["x"],
            help="pl.fillpad makes all of it valid",
        )
    return part


def _may_be_whole(source: ShapedType) -> bool:
    """Return whether the running program may find that all of a value is valid."""
    axes = zip(source.valid, source.shape, strict=True)
    return all(not isinstance(v, int) or not isinstance(extent, int) or v == extent for v, extent in axes)


def checked_shape(x: Expr, shape: Sequence[Expr], blame: str = "x") -> Shape:
    """Return the extents of a reshaped value, which has as many elements."""
    source, extents = shaped(x), as_shape(shape)
    if isinstance(source, TileType):
        extents = tile_shape(shape, "shape")
    if (
        is_static(extents)
        and is_static(source.shape)
        and prod(static_shape(extents)) != prod(static_shape(source.shape))
    ):
        raise ShapeMismatchError(
            f"{show_shape(source.shape)} and {show_shape(extents)} hold different numbers of elements",
            blame=[blame, "shape"],
        )
    return extents


def _reshape_type(x: Expr, shape: tuple[Expr, ...]) -> ShapedType:
    extents = checked_shape(x, shape)
    part = part_of(shaped(x), extents)
    return reshaped(shaped(x), extents, extents if part is None else known_part(part))


def known_part(part: Part) -> tuple[Extent, ...]:
    """Return how much a type knows of what is valid."""
    return tuple(extent if isinstance(extent, int) else None for extent in part)


def _live_part(result: ShapedType, x: Region, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return what is valid of a reshaped region; ExecutionError where it had to be valid as a whole."""
    valid = [have if isinstance(have, int) else None for have in result.valid]
    unknown = [axis for axis, extent in enumerate(valid) if extent is None]
    if result.valid == result.shape:
        valid = [*shape]
    elif len(unknown) == 1:
        rest = prod(extent for extent in valid if extent is not None)
        valid[unknown[0]] = prod(x.valid) // rest
    elif unknown:
        axes = aligned(x.data.shape, shape) or []
        valid = [1 if axis is None else x.valid[axis] for axis in axes]
    found = tuple(extent or 0 for extent in valid)
    if prod(found) != prod(x.valid):
        message = f"only a wholly valid value can be reshaped; {list(x.valid)} of {list(x.data.shape)} hold data"
        raise ExecutionError(message, help=FILL)
    return found


def _reshape(result: ShapedType, x: Region, shape: tuple[int, ...]) -> Region:
    if prod(shape) != x.data.size or any(extent < 0 for extent in shape):
        message = f"{list(x.data.shape)} and {list(shape)} hold different numbers of elements"
        raise ExecutionError(message, help=RESHAPED)
    valid = _live_part(result, x, shape)
    if isinstance(result, TileType):
        x.seen()
        return Region(np.reshape(x.data, shape), valid).forgotten()
    return reshaped_view(x, shape, valid)


def reshaped_view(x: Region, shape: Sequence[int], valid: Sequence[int]) -> Region:
    """Return a tensor's elements where they lie under another shape; ExecutionError where no view shows them so."""
    view = np.reshape(x.data, shape)
    if view.size and not np.shares_memory(view, x.data):
        raise ExecutionError("this view is strided: its elements cannot be reshaped in place", help=RESHAPED)
    return x.moved(lambda array: np.reshape(array, shape), valid)


@called("numpy torch triton")
@op(
    kinds=UNIFIED, infer=_reshape_type, evaluate=_reshape, control_plane=True, accepts=ANY, alias="x",
    example="flat = pl.reshape(a, [32, 16])\nout = pl.store(pl.reshape(flat, [16, 32]), [0, 0], out)",
)  # fmt: skip
def reshape(x: X, shape: Extents) -> X:
    """Return the same elements, in row-major order, under another shape; an axis written -1 has what is left for it.

    Where only part of them is valid, that part must be a box again: axes of one element may come and go, and a run of
    whole rows may be split or joined.
    """
    ...
