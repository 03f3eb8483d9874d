"""Raveled indices: one number for an index along each of two axes, which counts their elements along rows."""

from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Index, Tile
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region, embed
from tilewright.core.types import ShapedType, TileType
from tilewright.dtypes import BOOL, INT64
from tilewright.errors import DTypeMismatchError, OperandError, ShapeMismatchError
from tilewright.ops.declare import INTEGERS, TILE, op
from tilewright.ops.families import broadcast_valid, check_dtype, common_shape, elementwise_type, shaped
from tilewright.ops.indices import inside

__all__ = ["ravel_index"]


def _ravel_type(outer: Expr, inner: Expr, extents: tuple[Expr, ...], mask: Expr | None) -> ShapedType:
    tiles = {name: each for name, each in (("outer", outer), ("inner", inner)) if isinstance(each.type, TileType)}
    if not tiles:
        message = "a tile is needed among the indices of an element"
        raise OperandError(message, blame=["outer", "inner"], help="pl.read and pl.write take numbers alone")
    if len(extents) != 2:
        raise ShapeMismatchError(f"two extents are needed, got {len(extents)}", blame=["extents"])
    for name, each in tiles.items():
        check_dtype(shaped(each).dtype, INTEGERS, [name])
    if mask is not None and shaped(mask).dtype != BOOL:
        help = "compare: mask=indices < n"
        raise DTypeMismatchError(f"`mask` must hold bool, got {shaped(mask).dtype}", blame=["mask"], help=help)
    return elementwise_type(tiles if mask is None else {**tiles, "mask": mask}, INT64)


def _ravel(result: TileType, outer: Any, inner: Any, extents: tuple[int, ...], mask: Region | None) -> Region:
    regions = [each for each in (outer, inner, mask) if isinstance(each, Region)]
    common_shape(*(region.data.shape for region in regions))
    valid = broadcast_valid(regions)
    picked = _spread(True if mask is None else mask, valid)
    there = ((outer, extents[0], "outer"), (inner, extents[1], "inner"))
    rows, columns = (inside(np.where(picked, _spread(index, valid), 0), extent, name) for index, extent, name in there)
    return embed(rows.astype(np.int64) * extents[1] + columns, result.shape, INT64)


def _spread(index: Any, valid: tuple[int, ...]) -> Array:
    """Return an index for every element: one serves a whole axis."""
    if not isinstance(index, Region):
        return np.broadcast_to(np.asarray(index), valid)
    own = valid[len(valid) - index.data.ndim :]
    window = tuple(slice(0, 1 if size == 1 else v) for size, v in zip(index.data.shape, own, strict=True))
    return np.broadcast_to(index.seen(window), valid)


@op(
    kinds=TILE, infer=_ravel_type, evaluate=_ravel, accepts=INTEGERS, domain=(0.0, 0.9),
    example="column = pl.cast(pl.tile.full([1, 32], dtype=pl.FP32, value=3.0), pl.INT32)\n"
    "places = pl.ravel_index(2, column, [16, 32])\nout = pl.store(pl.take(x, places, axis=None), [0, 0], out)",
)  # fmt: skip
def ravel_index(outer: Tile | Index, inner: Tile | Index, extents: Extents, *, mask: Tile | None = None) -> Tile:
    """Return `outer * extents[1] + inner`: the number of each element when a matrix of some extents is counted through.

    An index outside its extent is an error; where `mask` is false it is not looked at, and the number is zero.
    """
    ...
