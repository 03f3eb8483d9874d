"""Dot products: products of few rows with a matrix whose columns lie as rows, as weights do output by output.

Both are read along K, a vector at a time, as they lie: a few rows of either are met together, their products summed in
the lanes of as many registers, and those across at the end. What is made of the right matrix element by element is
computed in registers; short numbers are multiplied in pairs where the processor does so.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.columns import lane_of
from tilewright.backends.cpu.compute.computed_products import loads_of
from tilewright.backends.cpu.compute.matrices import Panel
from tilewright.backends.cpu.compute.micro_kernels import forward, multiply_add
from tilewright.backends.cpu.compute.row_memory import Pass, Row, Spread, row_start, tensor_address, times
from tilewright.backends.cpu.compute.storage import (
    INTEGERS,
    computed_type,
    fetch,
    first_lanes,
    load,
    load_number,
    stored_type,
)
from tilewright.backends.cpu.compute.words import elements_of_word, multiply_pairs
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import LoadNode, Tile, static
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.dtypes import DataType
from tilewright.native.llvm import TRUE, Builder, Value, element, i64, lanes, shuffled, vector
from tilewright.passes.few_rows import FEW_ROWS
from tilewright.records import record

OUTPUTS = 4
"""Rows of the right matrix that are met together: their sums become neighbours in a vector."""
CHAINS = 8
"""How many sums are added to in turn: as many as an addition takes cycles times those begun in each."""


@record
class DotProduct:
    """One product being emitted; neighbours along the rows of `a` and `c` are adjacent."""

    e: FunctionEmitter
    a: Panel
    c: Panel
    extents: tuple[Value, Value, Value]
    """How many rows, columns and products of each element there are."""
    most_rows: int
    dtype: DataType
    """The type of the elements of `a`."""
    right: Tile
    """The right matrix as it lies: a row for each column."""
    accumulate: Value
    """Whether it is added to what `c` holds."""

    @property
    def _type(self) -> str:
        """The LLVM type of a vector of sums."""
        return vector(computed_type(self.dtype), self.e.lanes)

    @property
    def _pairs(self) -> bool:
        """Whether neighbours along K are multiplied and added in pairs."""
        node, right, target = self.right.node, self.right.type.dtype, self.e.program.target
        if not isinstance(node, LoadNode) or static(node.tensor.strides[-1]) != 1:
            return False
        if right.is_int() and right.bits == self.dtype.bits == 8:
            return target.vector_bits in (256, 512) and target.machine == "x86_64"
        return elements_of_word(target, self.dtype, right) == 2 and self.most_rows >= FEW_ROWS

    @property
    def _step(self) -> int:
        """How many elements along K a vector has."""
        return self.e.lanes * (2 if self._pairs else 1)

    @property
    def _height(self) -> int:
        """How many rows are met together."""
        return OUTPUTS if self.e.program.target.vector_registers == 32 else OUTPUTS // 2

    def emit(self) -> None:
        """Emit the product, a few rows of the right matrix at a time."""
        b, columns = self.e.b, self.extents[1]
        known = static(columns)
        whole = b.op("and", columns, i64(-OUTPUTS)) if known is None else i64(known // OUTPUTS * OUTPUTS)
        with b.loop(i64(0), whole, i64(OUTPUTS)) as column:
            self._bands(column, OUTPUTS)
            self.e.worked(PIECE)
        if known is None or known % OUTPUTS:
            with b.loop(whole, columns, i64(1)) as column:
                self._bands(column, 1)

    def _bands(self, column: Value, outputs: int) -> None:
        """Emit some columns of the product, a few rows at a time."""
        b, rows, height = self.e.b, self.extents[0], min(self._height, self.most_rows)
        known = static(rows)
        if known is None:
            height = 1 << height.bit_length() - 1  # which a mask counts whole ones of
        whole = b.op("and", rows, i64(-height)) if known is None else i64(known // height * height)
        with b.loop(i64(0), whole, i64(height)) as row:
            self._block(row, height, column, outputs)
        if known is None:
            with b.loop(whole, rows, i64(1)) as row:
                self._block(row, 1, column, outputs)
        elif known % height:
            self._block(whole, known % height, column, outputs)

    def _block(self, row: Value, height: int, column: Value, outputs: int) -> None:
        """Emit some columns of some rows: their sums over all of K, and those across."""
        b, count = self.e.b, height * outputs
        lefts = [self._left(row, at) for at in range(height)]
        rows = [self._right(column, at) for at in range(outputs)]
        ahead = b.mark()
        rights = [(each, Spread(ahead)) for each in rows]
        unrolled = max(1, CHAINS // count) if not self._pairs else 1
        depth, block = self.extents[2], self._step * unrolled
        known = static(depth)
        whole = b.op("and", depth, i64(-block)) if known is None else i64(known // block * block)
        zero = Value(self._type, "zeroinitializer")
        loop = b.open_loop(i64(0), whole, i64(block), [zero] * count * unrolled)
        sums = list[Value]()
        for turn in range(unrolled):
            k = b.op("add", loop.index, i64(turn * self._step)) if turn else loop.index
            sums += self._added(lefts, rights, k, None, loop.values[turn * count : (turn + 1) * count])
        ends = b.close_loop(loop, sums)
        totals = [self._sum(ends[at::count]) for at in range(count)]
        if known is None or known % block:
            rest = b.open_loop(whole, depth, i64(self._step), totals)
            mask = first_lanes(b, b.op("sub", depth, rest.index), self._step)
            totals = b.close_loop(rest, self._added(lefts, rights, rest.index, mask, rest.values))
        for at in range(height):
            self._store(b.op("add", row, i64(at)), column, totals[at * outputs : (at + 1) * outputs])

    def _left(self, row: Value, at: int) -> Value:
        """Return where a row of the left matrix begins."""
        b = self.e.b
        place = b.op("mul", b.op("add", row, i64(at)), self.a.across)
        return b.offset(self.a.pointer, place, stored_type(self.dtype, self.e.program.target))

    def _right(self, column: Value, at: int) -> Row:
        """Return a row of the right matrix, of what it is made of as well."""
        b = self.e.b
        row = Row((b.op("add", column, i64(at)),))
        row.starts.update({tile: row_start(b, tile, row) for tile in loads_of(self.right) if not tile.is_column})
        return row

    def _added(
        self,
        lefts: Sequence[Value],
        rights: Sequence[tuple[Row, Spread]],
        k: Value,
        mask: Value | None,
        sums: Sequence[Value],
    ) -> list[Value]:
        """Emit what a vector along K of each row adds to the sums of a block."""
        b = self.e.b
        passes = [Pass(row, k, self.e.lanes, mask, spread) for row, spread in rights]
        for here in passes if mask is None else ():
            self._fetch(here)
        met = [self._elements(here) for here in passes]
        totals = list[Value]()
        for at, left in enumerate(lefts):
            place = b.offset(left, k, stored_type(self.dtype, self.e.program.target))
            own = self._paired(place, self.dtype, mask) if self._pairs else self._single(place, mask)
            totals += [self._multiplied(own, each, sums[at * len(met) + n]) for n, each in enumerate(met)]
        return totals

    def _fetch(self, here: Pass) -> None:
        """Emit hints to fetch what is read soon: further along a row, or in the one that comes after these few."""
        b, depth = self.e.b, self.extents[2]
        for tile in (tile for tile in loads_of(self.right) if not tile.is_column and static(tile.valid[-2]) != 1):
            assert isinstance(tile.node, LoadNode)
            size, tensor = tile.type.dtype.get_byte(), tile.node.tensor
            ahead = i64(forward(self.e.program.target) // size)
            down = b.op("sub", times(b, tensor.strides[-2], i64(OUTPUTS)), depth)
            beyond = b.compare("icmp sge", b.op("add", here.column, ahead), depth)
            further = b.op("add", ahead, b.select(beyond, down, i64(0)))
            pointer = b.offset(tensor_address(b, tile, here), further, f"i{8 * size}")
            fetch(b, pointer)

    def _single(self, place: Value, mask: Value | None) -> Value:
        return load_number(self.e.b, self.dtype, self.e.program.target, place, self.e.lanes, mask)

    def _elements(self, here: Pass) -> Value:
        """Return a vector of the right matrix; elements that are not there are zero, whatever is made of nothing."""
        b = self.e.b
        if self._pairs:
            return self._paired(tensor_address(b, self.right, here), self.right.type.dtype, here.mask)
        found, dtype = lane_of(b, self.right, here).value, self.right.type.dtype
        kind, type_ = "sext" if dtype.is_signed_int() else "zext", vector(computed_type(dtype), self.e.lanes)
        wide = found if found.type == type_ else b.convert(kind, found, type_)
        return wide if here.mask is None else b.select(here.mask, wide, Value(wide.type, "zeroinitializer"))

    def _paired(self, place: Value, dtype: DataType, mask: Value | None) -> Value:
        """Return neighbours along K as words of two, each of 16 bits."""
        b, size = self.e.b, dtype.get_byte()
        found = load(b, vector(f"i{8 * size}", self._step), place, size, mask)
        return b.convert("sext" if dtype.is_signed_int() else "zext", found, vector("i16", self._step))

    def _multiplied(self, left: Value, right: Value, total: Value) -> Value:
        if not self._pairs:
            return multiply_add(self.e.b, left, right, total)
        if self.dtype.is_float():
            return multiply_pairs(self.e.b, left, right, total)
        name = "llvm.x86.avx512.pmaddw.d.512" if self.e.lanes == 16 else "llvm.x86.avx2.pmadd.wd"
        self.e.b.module.intrinsic(name, total.type, left.type, right.type)
        return self.e.b.op("add", total, self.e.b.call(total.type, name, left, right))

    def _sum(self, values: Sequence[Value]) -> Value:
        total, *others = values
        for value in others:
            total = _plus(self.e.b, total, value)
        return total

    def _store(self, row: Value, column: Value, totals: Sequence[Value]) -> None:
        """Emit the sums across some vectors, and write them side by side."""
        b = self.e.b
        value = across(b, totals)
        place = b.offset(self.c.pointer, b.op("add", b.op("mul", row, self.c.across), column), element(value.type))
        old = b.load(value.type, place, 4)
        both = _plus(b, old, value)
        b.store(both if self.accumulate == TRUE else b.select(self.accumulate, both, value), place, 4)


def _plus(b: Builder, x: Value, y: Value) -> Value:
    return b.op("add" if element(x.type) in INTEGERS else "fadd", x, y)


def across(b: Builder, totals: Sequence[Value]) -> Value:
    """Return the sum of the lanes of each of one vector or four, side by side."""
    count, parts = len(totals), list(totals)
    while len(parts) > 1:  # within every four lanes, those of two vectors come to stand side by side
        parts = [_pairwise(b, *parts[at : at + 2]) for at in range(0, len(parts), 2)]
    (total,) = parts
    while (width := lanes(total.type)) > max(count, 2):
        low, high = (shuffled(b, total, total, range(at, at + width // 2)) for at in (0, width // 2))
        total = _plus(b, low, high)
    if count > 1:
        return total
    return _plus(b, *(b.value(element(total.type), f"extractelement {total}, i64 {at}") for at in range(2)))


def _pairwise(b: Builder, x: Value, y: Value) -> Value:
    """Return sums of neighbours: of every four lanes those of the first vector, then those of the second."""
    width = lanes(x.type)
    starts = [of + four for four in range(0, width, 4) for of in (0, width)]
    even, odd = ([start + at for start in starts for at in own] for own in ((0, 2), (1, 3)))
    return _plus(b, shuffled(b, x, y, even), shuffled(b, x, y, odd))
