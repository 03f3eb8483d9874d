"""Scattering into tiles: elements by their number in the tile, columns by pattern."""

from tilewright.arrays import np
from tilewright.core.annotations import Tile
from tilewright.core.expr import Expr
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Region
from tilewright.core.types import ShapedType
from tilewright.ops.declare import ANY, TILE, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.indices import check_elements, check_index, check_same, inside, pattern_of
from tilewright.ops.scatter import PUT, check_pattern, index_dtypes, put_columns, put_elements

__all__ = ["scatter", "scatter_mask"]


def _scatter_type(dst: Expr, src: Expr, indexes: Expr) -> ShapedType:
    target, source = shaped(dst), shaped(src)
    check_dtype(target.dtype, PUT, ["dst"])
    check_elements(source, target, "src", "dst")
    check_index(indexes, index_dtypes(target.dtype), "indexes")
    check_same(shaped(indexes).shape, source.shape, ("indexes", "src"))
    return target


def _scatter(result: ShapedType, dst: Region, src: Region, indexes: Region) -> Region:
    target = dst.moved(np.array, dst.valid)
    indexes.seen()
    numbers = inside(indexes.seen(src.window), target.data.size, "indexes")
    put_elements(target, src.seen(), np.unravel_index(numbers, target.data.shape))
    return target


def _mask_type(dst: Expr, src: Expr, mask_pattern: int) -> ShapedType:
    check_pattern(shaped(src), shaped(dst), pattern_of(mask_pattern), ("src", "dst"))
    return shaped(dst)


def _mask(result: ShapedType, dst: Region, src: Region, mask_pattern: int) -> Region:
    return put_columns(dst.moved(np.array, dst.valid), src, pattern_of(mask_pattern))


@op(
    kinds=TILE, infer=_scatter_type, evaluate=_scatter, family="update", effect=Effect.WRITE, alias="dst", writes="dst",
    accepts=PUT, undefined=Undefined.MOVES, domain=(0.0, 0.9),
    example="places = pl.cast(pl.tile.full([1, 4], dtype=pl.FP32, value=7.0), pl.INT32)\n"
    "made = pl.tile.scatter(a, pl.slice(b, [1, 4], [0, 0]), places)\nout = pl.store(made, [0, 0], out)",
)  # fmt: skip
def scatter(dst: Tile, src: Tile, indexes: Tile) -> Tile:
    """Write each valid element of `src` to the element of `dst` with its index, counted along rows; return `dst`.

    Of several in one place the last stays. An index outside `dst` is an error.
    """
    ...


@op(
    kinds=TILE, infer=_mask_type, evaluate=_mask, family="update", effect=Effect.WRITE, alias="dst", writes="dst",
    accepts=ANY, undefined=Undefined.MOVES,
    example="made = pl.tile.scatter_mask(a, pl.slice(b, [16, 16], [0, 0]), pl.tile.MaskPattern.P0101)\n"
    "out = pl.store(made, [0, 0], out)",
)  # fmt: skip
def scatter_mask(dst: Tile, src: Tile, mask_pattern: int) -> Tile:
    """Write the valid part of `src` to the columns of `dst` that a pattern takes; return `dst`."""
    ...
