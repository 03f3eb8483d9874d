"""Gathering blocks: 32 bytes of a tile from each byte offset."""

from typing import Any

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.annotations import Tile
from tilewright.core.expr import Expr
from tilewright.core.region import Region, whole
from tilewright.core.types import Extent, TileType, static_shape
from tilewright.dtypes import UINT32, DataType
from tilewright.errors import ExecutionError, ShapeMismatchError
from tilewright.ops.declare import TILE, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.indices import check_index, check_rank

__all__ = ["gatherb"]

BLOCK = 32
"""Bytes that one offset takes."""
BLOCKED = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.UINT8, dt.UINT16, dt.UINT32, dt.FP16, dt.BF16, dt.FP32))
WITHIN = "an offset counts bytes, and the 32 bytes from it on lie inside the valid part of `src`"


def _gatherb_type(src: Expr, offset: Expr, output_dtype: DataType | None) -> TileType:
    source, places = shaped(src), shaped(offset)
    dtype = output_dtype or source.dtype
    check_rank(source, 2, "src")
    check_rank(places, 2, "offset")
    check_index(offset, (UINT32,), "offset")
    check_dtype(source.dtype, BLOCKED, ["src"])
    check_dtype(dtype, BLOCKED, ["src"])
    rows, columns = static_shape(places.shape)
    if columns % 8:
        message = f"the columns of `offset` are a multiple of 8, got {places}"
        raise ShapeMismatchError(message, blame=["offset"], help="pl.reshape it, or pad it with offsets of 0")
    lanes = BLOCK // dtype.get_byte()
    return TileType((rows, columns * lanes), dtype, (places.valid[0], _times(places.valid[1], lanes)))


def _times(extent: Extent, factor: int) -> Extent:
    return extent * factor if isinstance(extent, int) else None


def _gatherb(result: TileType, src: Region, offset: Region, output_dtype: DataType | None) -> Region:
    places, size = offset.seen().astype(np.int64), src.data.itemsize
    pitch, live, rows = src.data.shape[1] * size, src.valid[1] * size, src.valid[0]
    in_rows = (places + BLOCK <= rows * pitch) & (live == pitch)
    bad = ~(in_rows | ((places // pitch < rows) & (places % pitch + BLOCK <= live)))
    if bad.any():
        message = f"the {BLOCK} bytes from {places[bad][0]} on lie outside the valid part of a tile"
        raise ExecutionError(message, help=WITHIN)
    src.seen()
    memory: Any = np.reshape(np.ascontiguousarray(src.data), -1)
    blocks = memory.view(np.uint8)[places[..., None] + np.arange(BLOCK)]
    rows, columns = places.shape
    elements = blocks.reshape(rows, columns * BLOCK).view(result.dtype.numpy)
    data = np.zeros(result.shape, result.dtype.numpy)
    data[tuple(slice(0, extent) for extent in elements.shape)] = elements
    return Region(data, elements.shape).forgotten() if elements.shape != result.shape else whole(data)


@op(
    kinds=TILE, infer=_gatherb_type, evaluate=_gatherb, accepts=BLOCKED, domain=(0.0, 0.9),
    example="places = pl.cast(pl.tile.full([2, 8], dtype=pl.FP32, value=64.0), pl.UINT32)\n"
    "out = pl.store(pl.slice(pl.gatherb(a, places), [2, 32], [0, 32]), [0, 0], out)",
)  # fmt: skip
def gatherb(src: Tile, offset: Tile, *, output_dtype: DataType | None = None) -> Tile:
    """Return for each byte offset the 32 bytes of `src` from there on, as elements of `output_dtype`.

    A block that ends outside the valid part of `src` is an error.
    """
    ...
