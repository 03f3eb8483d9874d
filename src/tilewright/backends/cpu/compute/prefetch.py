"""Prefetch: hints to fetch what a loop over rows reads next, where memory is the limit."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.row_memory import Pass, tensor_address, times, window
from tilewright.backends.cpu.compute.storage import FIRST_CACHE, SECOND_CACHE, fetch
from tilewright.backends.cpu.compute.streaming import is_small
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Tile, static
from tilewright.native.llvm import Builder, Value, i64

AHEAD = 4096
"""Bytes between what a pass reads and what it has fetched, where rows follow each other in memory.

On one core of a Zen 5 silu(x) * y takes 3.4 ms for 4096 x 4096 floats and 4.0 where it is 1024, on two 1.64 and 2.0.
"""
NARROW, PIECE = 512, 1024
"""The same along rows of which a tile has only some columns: what it has not follows in the next tile, if at all. Of
rows that are as long as a piece what lies further down is fetched. They come to the first cache, which no other row
asks for in between: sums of 4096 x 4032 floats in tiles of 16 x 64 take 2.5 ms, and 3.8 where 1024 bytes ahead come to
the second."""
FAR = 8192
"""The same, where every row begins on another page: it takes longer to be found."""
TALL = 4
"""How many times as high as rows are fetched ahead a tile is that is read down."""


class Prefetch:
    """The loads of a group whose elements come from far away: those that span all the rows, but for rows that stray.

    5000 bags of 16 rows of 128 floats, loaded where numbers say, take a Zen 5 0.80 ms, and 1.03 with what lies behind.
    """

    def __init__(
        self,
        b: Builder,
        rows: tuple[Value, ...],
        tiles: Sequence[Tile],
        *,
        down: int,
        goes_on: bool = False,
    ) -> None:
        loads = [(tile, tile.node) for tile in tiles if isinstance(tile.node, LoadNode) and not tile.is_column]
        self.b, self.down = b, down
        """How many rows further down is fetched; 0: further along this row."""
        self.goes_on = goes_on
        """Whether the next columns of the same row are read next, of tiles that have only some."""
        far = [tile for tile, node in loads if not (is_small(node.tensor) or node.strays)]
        self.tiles = [tile for tile in far if tile.rows == rows and len(window(tile)[0].shape) > 1]

    def emit(self, here: Pass) -> None:
        """Emit hints to fetch what is read next: further along this row, or the same of a later row."""
        for tile in self.tiles:
            tensor, pointer = window(tile)[0], tensor_address(self.b, tile, here)
            rows, cache = self.down or (0 if self.goes_on else _rows_ahead(tile)), SECOND_CACHE
            if rows:
                down = times(self.b, tensor.strides[-2], i64(rows))
                ahead = self.b.offset(pointer, down, memory_type(tensor.dtype))
            else:
                is_long = self.goes_on or _is_whole(tile)
                distance, cache = (AHEAD, SECOND_CACHE) if is_long else (NARROW, FIRST_CACHE)
                ahead = self.b.offset(pointer, i64(distance), "i8")
            fetch(self.b, ahead, cache)


def _rows_ahead(tile: Tile) -> int:
    """Return how many rows down lies what is fetched now; 0 for what is further along the same row.

    Whole rows follow each other in memory. Rows of a few columns do not, and the processor fetches none by itself. Tall
    tiles are better read down than on: an Emerald Rapids multiplies 1024³ floats in 14.5 ms, copying 512 x 128 of them
    at a time, and in 14.8 where it fetches along their rows. Of what is read backwards the next rows lie ahead: a Zen 5
    turns 2048 x 2048 floats upside down in 0.43 ms, and in 0.47 where it fetches what lies behind.
    """
    height, width = static(tile.valid[-2]), static(tile.valid[-1])
    if isinstance(tile.node, LoadNode) and tile.node.backwards:
        return max(1, AHEAD // (tile.type.shape[-1] * tile.type.dtype.get_byte()))
    if height is None or width is None or _is_whole(tile):
        return 0
    nbytes = width * tile.type.dtype.get_byte()
    return min(FAR // nbytes, height // 2) if nbytes >= PIECE or height >= TALL * (FAR // nbytes) else 0


def _is_whole(tile: Tile) -> bool:
    """Return whether a tile has all the columns of its tensor."""
    return window(tile)[0].shape[-1] == tile.valid[-1]
