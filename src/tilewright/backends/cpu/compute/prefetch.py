"""Prefetch: hints to fetch what a loop over rows reads next, where memory is the limit."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.row_memory import Pass, tensor_address, times, window
from tilewright.backends.cpu.compute.streaming import is_small
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Tile, static
from tilewright.native.llvm import Builder, Value, i64

AHEAD = 4096
"""Bytes between what a pass reads and what it has fetched, where rows follow each other in memory.

On one core of a Zen 5 silu(x) * y takes 3.4 ms for 4096 x 4096 floats and 4.0 where it is 1024, on two 1.64 and 2.0.
"""
NARROW = 1024
"""The same along rows of which a tile has only some columns: what it has not follows in the next tile, if at all."""
FAR = 8192
"""The same, where every row begins on another page: it takes longer to be found."""


class Prefetch:
    """The loads of a group whose elements come from far away: those that span all the rows."""

    def __init__(self, b: Builder, rows: tuple[Value, ...], tiles: Sequence[Tile], *, in_next_row: bool) -> None:
        loads = [(tile, tile.node) for tile in tiles if isinstance(tile.node, LoadNode) and not tile.is_column]
        self.b, self.in_next_row = b, in_next_row
        far = [tile for tile, node in loads if not is_small(node.tensor)]
        self.tiles = [tile for tile in far if tile.rows == rows and len(window(tile)[0].shape) > 1]

    def emit(self, here: Pass) -> None:
        """Emit hints to fetch what is read next: further along this row, or the same of the next row."""
        for tile in self.tiles:
            tensor, pointer = window(tile)[0], tensor_address(self.b, tile, here)
            rows = 1 if self.in_next_row else _rows_ahead(tile)
            if rows:
                down = times(self.b, tensor.strides[-2], i64(rows))
                ahead = self.b.offset(pointer, down, memory_type(tensor.dtype))
            else:
                ahead = self.b.offset(pointer, i64(AHEAD if _is_whole(tile) else NARROW), "i8")
            name = self.b.module.intrinsic("llvm.prefetch.p0", "void", "ptr", *["i32 immarg"] * 3)
            read, second_level, data = Value("i32", "0"), Value("i32", "2"), Value("i32", "1")
            self.b.invoke(name, ahead, read, second_level, data)


def _rows_ahead(tile: Tile) -> int:
    """Return how many rows down lies what is fetched now; 0 for what is further along the same row.

    Whole rows follow each other in memory. Rows of a few columns do not, and the processor fetches none by itself.
    """
    height, width = static(tile.valid[-2]), static(tile.valid[-1])
    if height is None or width is None or _is_whole(tile):
        return 0
    nbytes = width * tile.type.dtype.get_byte()
    return min(FAR // nbytes, height // 2) if nbytes >= NARROW else 0


def _is_whole(tile: Tile) -> bool:
    """Return whether a tile has all the columns of its tensor."""
    return window(tile)[0].shape[-1] == tile.valid[-1]
