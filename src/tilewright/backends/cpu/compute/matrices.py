"""Matrices: where the elements of tiles lie that are read there, in the arena or in a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.storage import SECOND_CACHE, fetch
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Tile
from tilewright.dtypes import DataType
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import Value, i64

LINE = 64
"""Bytes of a cache line."""


class Matrix(NamedTuple):
    """Matrices of one element type in memory: an address and the distance between neighbours along each axis."""

    pointer: Value
    strides: tuple[Value, ...]
    dtype: DataType

    def at(self, e: FunctionEmitter, shape: Sequence[int], batch: Sequence[Value]) -> Value:
        """Return where the matrix of a batch index lies; there is one for all along axes of one element."""
        offset: Value = i64(0)
        own = batch[len(batch) - len(shape) + 2 :]
        for index, extent, stride in zip(own, shape, self.strides, strict=False):
            if extent != 1:
                offset = e.b.op("add", offset, e.b.op("mul", index, stride))
        return e.b.offset(self.pointer, offset, memory_type(self.dtype))


class Panel(NamedTuple):
    """A matrix in memory: its address, and how far its rows and its columns are apart."""

    pointer: Value
    across: Value
    along: Value


def placed(e: FunctionEmitter, tile: Tile) -> Matrix:
    """Return the matrices of a tile in the arena."""
    place = e.stored(tile)
    return Matrix(place.pointer, tuple(i64(stride) for stride in place.strides), tile.type.dtype)


def read_in_place(e: FunctionEmitter, tile: Tile) -> Matrix | None:
    """Return where a loaded tile's elements lie in their tensor, if the plan says that they are read there."""
    node = tile.node
    if tile.place is not None or not isinstance(node, LoadNode) or e.waits(tile):
        return None
    offset: Value = i64(0)
    for start, stride in zip(node.offsets, node.tensor.strides, strict=True):
        offset = e.b.op("add", offset, e.b.op("mul", start, stride))
    pointer = e.b.offset(node.tensor.pointer, offset, memory_type(tile.type.dtype))
    return Matrix(pointer, node.tensor.strides, tile.type.dtype)


def fetch_rows(e: FunctionEmitter, matrix: Matrix, rows: int, columns: int) -> None:
    """Emit hints to fetch the rows that follow some rows of a matrix in memory."""
    size = matrix.dtype.get_byte()
    next_ = e.b.offset(matrix.pointer, e.b.op("mul", matrix.strides[-2], i64(rows)), memory_type(matrix.dtype))
    with e.b.loop(i64(0), i64(rows * columns * size), i64(LINE)) as at:
        fetch(e.b, e.b.offset(next_, at, "i8"), SECOND_CACHE)
