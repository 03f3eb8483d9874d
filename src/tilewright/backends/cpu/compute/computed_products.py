"""Computed products: products of few rows that compute the right matrix in registers as they read it.

A few rows of it are met at a time, from their beginning to their end, as memory has them. What is made of the elements
is recorded as everything is that works row by row, and emitted for the vectors of a register block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.cpu.compute.columns import lane_of
from tilewright.backends.cpu.compute.matrices import Panel
from tilewright.backends.cpu.compute.matrix_products import STRIP
from tilewright.backends.cpu.compute.micro_kernels import forward
from tilewright.backends.cpu.compute.nodes import MapNode, reached
from tilewright.backends.cpu.compute.row_memory import Pass, Row, Spread, row_start, tensor_address, times
from tilewright.backends.cpu.compute.storage import fetch, first_lanes, load, spread_number, store, stored_type
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import LoadNode, Tile, static
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.dtypes import DataType
from tilewright.native.llvm import F32, Value, i64, vector
from tilewright.records import record

LINE = 64
"""Bytes that come from memory together."""


@record
class ComputedTerm:
    """One of the products that are added up: the left matrix as it lies, and the right one as it is computed."""

    a: Panel
    dtype: DataType
    right: Tile

    @property
    def loads(self) -> list[Tile]:
        """What the right matrix is made of."""
        return loads_of(self.right)


def loads_of(tile: Tile) -> list[Tile]:
    """Return the loads that a tile is made of, element by element."""
    return [each for each in reached(tile) if isinstance(each.node, LoadNode)]


def is_computed(e: FunctionEmitter, tile: Tile) -> bool:
    """Return whether a tile is recorded, and left to the product that reads it."""
    return tile.place is None and isinstance(tile.node, MapNode) and not e.waits(tile)


@record
class ComputedProduct:
    """A sum of products being emitted; neighbours along the rows of `c` are adjacent."""

    e: FunctionEmitter
    terms: Sequence[ComputedTerm]
    c: Panel
    rows: int
    columns: Value
    depth: Value
    accumulate: Value
    """Whether it is added to what `c` holds."""

    @property
    def vectors(self) -> int:
        """How many vectors a register block has, a power of two: as many as leave registers for what is computed."""
        sums = 16 if self.e.program.target.vector_bits == 512 else 8
        return next((count for count in (4, 2) if count * self.rows <= sums), 1)

    def emit(self) -> None:
        """Emit the sum, some rows of the right matrix at a time: those are read once, one after the other."""
        b, k, block = self.e.b, self.depth, self.vectors * self.e.lanes
        some = k if static(k) else b.intrinsic("llvm.smax", k, i64(1))  # a sum of nothing is zero
        whole = b.op("and", self.columns, i64(-block))
        with b.loop(i64(0), some, i64(STRIP)) as first:
            end = b.intrinsic("llvm.smin", k, b.op("add", first, i64(STRIP)))
            goes_on = b.op("or", self.accumulate, b.compare("icmp sgt", first, i64(0)))
            with b.loop(i64(0), whole, i64(block)) as column:
                self._block(first, end, column, self.vectors, None, goes_on)
            with b.loop(whole, self.columns, i64(self.e.lanes)) as column:
                mask = first_lanes(b, b.op("sub", self.columns, column), self.e.lanes)
                self._block(first, end, column, 1, mask, goes_on)
            self.e.worked(PIECE)

    def _block(self, first: Value, end: Value, column: Value, vectors: int, mask: Value | None, goes_on: Value) -> None:
        """Emit some rows of the right matrix, as far as a register block is wide."""
        b, type_ = self.e.b, vector(F32, self.e.lanes)
        columns = [b.op("add", column, i64(at * self.e.lanes)) for at in range(vectors)]
        places = [self._place(row, at) for row in range(self.rows) for at in columns]
        held = [load(b, type_, place, 4, mask) for place in places]
        sums = [b.select(goes_on, value, Value(type_, "zeroinitializer")) for value in held]
        loop = b.open_loop(first, end, i64(1), sums)
        following = self._step(loop.index, columns, mask, loop.values)
        for place, total in zip(places, b.close_loop(loop, following), strict=True):
            store(b, total, place, 4, mask)

    def _place(self, row: int, column: Value) -> Value:
        """Return where a vector of a block of the sums lies."""
        b = self.e.b
        return b.offset(self.c.pointer, b.op("add", b.op("mul", self.c.across, i64(row)), column), F32)

    def _step(self, k: Value, columns: Sequence[Value], mask: Value | None, sums: Sequence[Value]) -> list[Value]:
        """Emit what a row of the right matrix adds to the sums of a block."""
        b, row, spread, lanes = self.e.b, Row((k,)), Spread(self.e.b.mark()), self.e.lanes
        loads = list(dict.fromkeys(tile for term in self.terms for tile in term.loads))
        row.starts.update({tile: row_start(b, tile, row) for tile in loads if not tile.is_column})
        passes = [Pass(row, column, lanes, mask, spread) for column in columns]
        for tile in loads if mask is None else ():
            self._fetch(tile, passes[0], len(columns))
        totals = list(sums)
        for term in self.terms:
            right = [lane_of(b, term.right, here).value for here in passes]
            for at, left in enumerate(self._left(term, k)):
                for vector_, value in enumerate(right):
                    number = at * len(columns) + vector_
                    totals[number] = b.intrinsic("llvm.fmuladd", left, value, totals[number])
        return totals

    def _left(self, term: ComputedTerm, k: Value) -> Iterator[Value]:
        """Emit an element of each row of a left matrix, in every lane."""
        b, target = self.e.b, self.e.program.target
        for row in range(self.rows):
            at = b.op("add", b.op("mul", term.a.across, i64(row)), b.op("mul", term.a.along, k))
            place = b.offset(term.a.pointer, at, stored_type(term.dtype, target))
            yield spread_number(b, term.dtype, target, place, self.e.lanes)

    def _fetch(self, tile: Tile, here: Pass, vectors: int) -> None:
        """Emit hints to fetch what is read soon: further along the row, or in the row that comes after these few."""
        if static(tile.valid[-2]) == 1 or tile.is_column or not isinstance(tile.node, LoadNode):
            return
        b, size, tensor = self.e.b, tile.type.dtype.get_byte(), tile.node.tensor
        ahead = i64(forward(self.e.program.target) // size)
        down = b.op("sub", times(b, tensor.strides[-2], i64(STRIP)), self.columns)
        beyond = b.compare("icmp sge", b.op("add", here.column, ahead), self.columns)
        further = b.op("add", ahead, b.select(beyond, down, i64(0)))
        pointer = b.offset(tensor_address(b, tile, here), further, f"i{8 * size}")
        for byte in range(0, vectors * self.e.lanes * size, LINE):
            fetch(b, b.offset(pointer, i64(byte), "i8"))
