"""Fills: new tensors and tiles all of whose elements are one number."""

from dataclasses import replace
from typing import Any

from tilewright.core.annotations import Extents, Number, Tensor, Tile
from tilewright.core.elsewhere import called
from tilewright.core.expr import Expr
from tilewright.core.op import Effect
from tilewright.core.region import Region
from tilewright.core.types import ShapedType, TileType, tile
from tilewright.dtypes import DataType
from tilewright.errors import ExecutionError
from tilewright.ops.declare import ANY, TENSOR, TILE, op
from tilewright.ops.memory import check_extents, check_number, created_type, filled
from tilewright.ops.windows import check_rank, tile_shape, valid_extents

__all__ = ["full", "tile_full"]


def _full(result: ShapedType, shape: tuple[int, ...], dtype: DataType, value: Any) -> Region:
    check_extents(shape)
    data = filled(shape, dtype, value)
    return Region(data, data.shape, is_made=True)


def _filled_tile(
    shape: tuple[Expr, ...], dtype: DataType, value: Expr, valid_shape: tuple[Expr, ...] | None
) -> TileType:
    check_number(value, dtype)
    whole = tile_shape(shape, "shape")
    if valid_shape is not None:
        check_rank(valid_shape, len(whole), "valid_shape", "tile")
    return tile(whole, dtype, valid_extents(whole, valid_shape))


def _full_tile(
    result: TileType, shape: tuple[int, ...], dtype: DataType, value: Any, valid_shape: tuple[int, ...] | None
) -> Region:
    if any(not 0 <= want <= size for want, size in zip(valid_shape or shape, shape, strict=True)):
        raise ExecutionError(f"a valid part of {list(valid_shape or ())} does not fit {list(shape)}")
    made = _full(result, shape, dtype, value)
    return made if valid_shape is None else replace(made, valid=valid_shape).forgotten()


@called("numpy torch triton", numpy="full_like zeros ones", torch="full_like zeros ones", triton="zeros")
@op(
    kinds=TENSOR, infer=created_type, evaluate=_full, effect=Effect.ALLOCATE, accepts=ANY,
    example="ones = pl.full([16, 32], dtype=pl.FP32, value=1.0)\n"
    "out = pl.store(pl.load(ones, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def full(shape: Extents, dtype: DataType, value: Number) -> Tensor:
    """Return a new buffer all of whose elements are `value`; with `valid_shape=` it is the tile of `pl.tile_full`."""
    ...


@op(
    kinds=TILE, name="full", infer=_filled_tile, evaluate=_full_tile, accepts=ANY,
    example="out = pl.store(pl.tile.full([16, 32], dtype=pl.FP32, value=1.0), [0, 0], out)",
)  # fmt: skip
def tile_full(shape: Extents, dtype: DataType, value: Number, valid_shape: Extents | None = None) -> Tile:
    """Return a tile all of whose elements are `value`, or of which as much as `valid_shape` is valid."""
    ...
