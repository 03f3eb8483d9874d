"""Fills: new tensors and tiles all of whose elements are one number."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.core.annotations import Extents, Number, Tensor, Tile
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect
from tilewright.core.region import Region
from tilewright.core.types import ShapedType, TileType, tile
from tilewright.dtypes import FP32, DataType
from tilewright.ops.declare import ANY, TENSOR, TILE, op
from tilewright.ops.derived import Writing, written
from tilewright.ops.memory import check_extents, check_number, created_type, filled
from tilewright.ops.windows import check_part, check_rank, tile_shape, valid_extents

__all__ = ["full", "ones", "tile_full", "zeros"]

_ORDERS = (("shape", "value", "dtype", "valid_shape"),)
"""How NumPy, torch and Triton order what is filled in."""


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
    check_part(valid_shape or shape, shape)
    made = _full(result, shape, dtype, value)
    return made if valid_shape is None else replace(made, valid=valid_shape).forgotten()


def _all(number: int) -> Callable[..., Any]:
    def expand(w: Writing, **given: Any) -> Expr:
        return w.do("tile.full", value=number, **given)

    return expand


@called("numpy torch triton", numpy="full_like", torch="full_like")
@op(
    kinds=TENSOR, infer=created_type, evaluate=_full, effect=Effect.ALLOCATE, accepts=ANY, orders=_ORDERS,
    example="ones = pl.full([16, 32], dtype=pl.FP32, value=1.0)\n"
    "out = pl.store(pl.load(ones, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def full(shape: Extents, dtype: DataType, value: Number) -> Tensor:
    """Return a new buffer all of whose elements are `value`.

    With `valid_shape=`, and where only a tile will do, it is the tile of `pl.tile_full`.
    """
    ...


@op(
    kinds=TILE, name="full", infer=_filled_tile, evaluate=_full_tile, accepts=ANY, orders=_ORDERS,
    example="out = pl.store(pl.tile.full([16, 32], dtype=pl.FP32, value=1.0), [0, 0], out)",
)  # fmt: skip
def tile_full(shape: Extents, dtype: DataType, value: Number, valid_shape: Extents | None = None) -> Tile:
    """Return a tile all of whose elements are `value`, or of which as much as `valid_shape` is valid."""
    ...


@called("numpy torch triton", numpy="zeros_like", torch="zeros_like")
@op(
    kinds=TILE, infer=written, evaluate=written, family="derived", expand=_all(0), accepts=ANY,
    example="out = pl.store(pl.zeros([16, 32]) + a, [0, 0], out)",
)  # fmt: skip
def zeros(shape: Extents, dtype: DataType = FP32, valid_shape: Extents | None = None) -> Tile:
    """Return a tile of zeros, of which as much as `valid_shape` is valid: where sums begin."""
    ...


@called("numpy torch", numpy="ones_like", torch="ones_like")
@op(
    kinds=TILE, infer=written, evaluate=written, family="derived", expand=_all(1), accepts=ANY,
    example="out = pl.store(pl.ones([16, 32]) + a, [0, 0], out)",
)  # fmt: skip
def ones(shape: Extents, dtype: DataType = FP32, valid_shape: Extents | None = None) -> Tile:
    """Return a tile of ones, of which as much as `valid_shape` is valid."""
    ...
