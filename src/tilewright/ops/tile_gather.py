"""Gathering from tiles: elements by their number in the tile, columns by pattern, places of those that compare."""

from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Number, Tile
from tilewright.core.expr import Expr
from tilewright.core.region import Region, embed
from tilewright.core.types import TileType, TupleType, static_shape
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, ExecutionError
from tilewright.ops.declare import ANY, TILE, op
from tilewright.ops.families import shaped
from tilewright.ops.indices import INSIDE, PICKED, check_picked, inside, pattern_of
from tilewright.ops.places import places_type
from tilewright.ops.selection import COMPARISONS, Parts, compared, compared_types, masked, masked_type

__all__ = ["gather", "gather_compare", "gather_mask", "pick"]


def tile_of(parts: Parts) -> TileType:
    """Return the type of a tile."""
    shape, dtype, valid = parts
    return TileType(static_shape(shape), dtype, valid)


def _gather_type(src: Expr, indices: Expr, tmp: Expr | None) -> TileType:
    source, asked = shaped(src), shaped(indices)
    check_picked(source, indices, "src", "indices")
    return tile_of((asked.shape, source.dtype, asked.valid))


def _gather(result: TileType, src: Region, indices: Region, tmp: Region | None) -> Region:
    numbers = inside(indices.seen(), src.data.size, "indices")
    places = np.unravel_index(numbers, src.data.shape)
    for axis, (place, extent) in enumerate(zip(places, src.valid, strict=True)):
        if (place >= extent).any():
            message = f"axis {axis}: index {numbers[place >= extent][0]} of `indices` points at what is not valid"
            raise ExecutionError(message, help=INSIDE)
    src.seen()
    return embed(src.data[places], result.shape, result.dtype)


def _pick_type(x: Expr, indices: Expr, axis: int) -> TileType:
    source, result = shaped(x), places_type(x, indices, 0, None)
    last = len(source.shape) - 1
    if axis not in (0, -1, last):
        help = "turn the tile: pl.transpose(pl.tile.pick(pl.transpose(t, 0, 1), indices), 0, 1)"
        raise AttributeValueError(f"`axis` is the first one or the last, {last}, got {axis!r}", help=help)
    if axis % (last + 1):
        shape, valid = static_shape(source.shape), source.valid
        return TileType((*shape[:-1], result.shape[0]), source.dtype, (*valid[:-1], result.valid[0]))
    return TileType(
        result.shape, source.dtype, (*result.valid[:1], *source.valid[1:]) if len(source.shape) > 1 else result.valid
    )


def _pick(result: TileType, x: Region, indices: Region, axis: int) -> Region:
    numbers = np.reshape(indices.seen(), -1) if x.data.ndim > 1 else indices.seen()
    taken = np.take(x.seen(), inside(numbers, x.valid[axis], "indices"), axis)
    return embed(taken, result.shape, result.dtype)


def _mask_type(src: Expr, mask_pattern: int, output_dtype: DataType | None) -> TileType:
    return tile_of(masked_type(shaped(src), pattern_of(mask_pattern), output_dtype))


def _mask(result: TileType, src: Region, mask_pattern: int, output_dtype: DataType | None) -> Region:
    src.seen()
    return masked(result, src, pattern_of(mask_pattern)).forgotten()


def _compare_type(
    src: Expr,
    kvalue: Expr,
    tmp: Expr | None,
    cmp_mode: str | int,
    offset: int,
    out_cols: int,
    count_dtype: DataType | None,
) -> TupleType:
    return TupleType(tuple(map(tile_of, compared_types(shaped(src), kvalue, cmp_mode, out_cols, offset, count_dtype))))


def _compare(
    result: TupleType,
    src: Region,
    kvalue: Any,
    tmp: Region | None,
    cmp_mode: str | int,
    offset: int,
    out_cols: int,
    count_dtype: DataType | None,
) -> tuple[Region, Region]:
    return compared(result, src, kvalue, cmp_mode, out_cols, offset)


@op(
    kinds=TILE, infer=_gather_type, evaluate=_gather, accepts=PICKED, domain=(0.0, 0.9),
    example="first = pl.cast(pl.tile.full([16, 32], dtype=pl.FP32, value=7.0), pl.INT32)\n"
    "out = pl.store(pl.tile.gather(a, first), [0, 0], out)",
)  # fmt: skip
def gather(src: Tile, indices: Tile, tmp: Tile | None = None) -> Tile:
    """Return for each index the element of `src` with that number, counted along its rows.

    An index that points outside `src`, or at what is not valid of it, is an error.
    """
    ...


@op(
    kinds=TILE, infer=_pick_type, evaluate=_pick, accepts=ANY, domain=(0.0, 0.9),
    example="rows = pl.cast(pl.tile.full([1, 16], dtype=pl.FP32, value=3.0), pl.INT32)\n"
    "out = pl.store(pl.tile.pick(a, rows), [0, 0], out)",
)  # fmt: skip
def pick(x: Tile, indices: Tile, *, axis: int = 0) -> Tile:
    """Return the rows of a tile, or the elements of a vector, that indices name; also written `t[indices]`.

    Along the last axis it is the columns, `t[:, indices]`. Both are named by indices in a line. An index outside what
    is valid of `x` is an error.
    """
    ...


@op(
    kinds=TILE, infer=_mask_type, evaluate=_mask, accepts=ANY,
    example="every = pl.tile.gather_mask(a, pl.tile.MaskPattern.P1010)\nout = pl.store(every, [0, 0], out)",
)  # fmt: skip
def gather_mask(src: Tile, mask_pattern: int, *, output_dtype: DataType | None = None) -> Tile:
    """Return the columns of `src` that a pattern takes, side by side, their bits read as `output_dtype`."""
    ...


@op(
    kinds=TILE, infer=_compare_type, evaluate=_compare, accepts=PICKED, codes={"cmp_mode": COMPARISONS},
    example='places, counts = pl.tile.gather_compare(a, 1.0, cmp_mode="gt", out_cols=32)\n'
    "out = pl.store(pl.cast(places, pl.FP32), [0, 0], out)",
)  # fmt: skip
def gather_compare(
    src: Tile,
    kvalue: Number,
    tmp: Tile | None = None,
    *,
    cmp_mode: str | int = "eq",
    offset: int = 0,
    out_cols: int,
    count_dtype: DataType | None = None,
) -> tuple[Tile, Tile]:
    """Return for each row the numbers of the columns whose element compares to `kvalue` so, and how many there are.

    The numbers ascend, each plus `offset`; the first `out_cols` of them are kept, and zeros come after the last.
    """
    ...
