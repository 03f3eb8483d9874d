"""Column products: rows of a matrix met by one column, which is a row as it lies."""

from __future__ import annotations

from tilewright.backends.cpu.compute.dot_products import DotProduct
from tilewright.backends.cpu.compute.matrices import Matrix, Panel
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Tensor, Tile, static
from tilewright.core.types import TileType
from tilewright.native.llvm import Value, i64
from tilewright.records import record


@record
class ColumnProduct:
    """One product being emitted; neighbours along the rows of `left` and down `column` are adjacent.

    2048 x 2048 floats by a column take a Zen 5 0.19 ms so, and 1.0 in blocks of which one column counts.
    """

    e: FunctionEmitter
    left: Matrix
    type: TileType
    valid: tuple[Value, ...]
    """What is known of the left matrix."""
    column: Matrix
    depth: Value
    accumulate: Value
    """Whether it is added to what the target holds, which then is a column without gaps."""

    def emit(self, rows: Value, target: Matrix) -> None:
        """Emit so many rows of the product."""
        if static(target.strides[-2]) == 1:
            self._into(rows, target.pointer)
            return
        part = self.e.arena.take(self.type.shape[0] * target.dtype.get_byte())
        made = self.e.address(part[0])
        self._into(rows, made)
        self._spread(rows, made, target)
        self.e.arena.give_back(part)

    def _into(self, rows: Value, pointer: Value) -> None:
        shape = tuple(map(i64, self.type.shape))
        memory = Tensor(self.left.pointer, shape, self.left.strides, self.valid, self.left.dtype, object())
        met = Tile(self.type, self.valid, node=LoadNode(tensor=memory, offsets=(i64(0), i64(0))))
        a, c = (Panel(place, i64(0), i64(1)) for place in (self.column.pointer, pointer))
        extents = (i64(1), rows, self.depth)
        DotProduct(self.e, a, c, extents, 1, self.column.dtype, met, self.accumulate).emit()

    def _spread(self, rows: Value, made: Value, target: Matrix) -> None:
        """Emit a copy of the result to elements that may lie apart."""
        b, type_, size = self.e.b, memory_type(target.dtype), target.dtype.get_byte()
        with b.loop(i64(0), rows, i64(1)) as row:
            number = b.load(type_, b.offset(made, row, type_), size)
            b.store(number, b.offset(target.pointer, b.op("mul", row, target.strides[-2]), type_), size)
