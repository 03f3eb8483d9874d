"""Reductions: rows and columns folded, as they are computed or where they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.backends.cpu.compute.copies import element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.folded_rows import ComputedRows, Rows, RowsInMemory, fetch_gathered
from tilewright.backends.cpu.compute.foldings import folding, pair_folding
from tilewright.backends.cpu.compute.matrices import Matrix, placed, read_in_place
from tilewright.backends.cpu.compute.nodes import IndexNode, MapNode, PickNode, ReduceNode, RowsNode
from tilewright.backends.cpu.compute.storage import first_lanes, load, store
from tilewright.backends.cpu.compute.tiles import recorded
from tilewright.backends.cpu.compute.traced import (
    Lanes,
    combine,
    from_memory,
    rounded,
    to_memory,
)
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import sources_of
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import literal, memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Place, Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.core.op import OpSpec
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL, FP32, INT32, DataType
from tilewright.native.llvm import Value, i64, vector

Kept: TypeAlias = "Sequence[Mapping[Tile, Lanes]]"
"""What is the same in every row of some vectors of columns."""

VECTORS = 4
"""How many vectors of columns are folded together."""

GATHERED = 8
"""How many at first where rows are gathered: of each there is as much at once as a processor fetches by itself."""

FETCHED = 4
"""How many rows further on the one lies that is fetched while another that is gathered is folded."""
WIDE, ROWS = 128, 8
"""Columns from which on whole rows are folded into a row of sums, and how many of them at a time."""

TALL = 256
"""Rows from which on those of a few columns are folded many at once: what that leaves takes as long as 64."""


@lowers("tile:reduction")
def _reduction(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    if not call.op.spec.name.startswith("row"):
        return _columns(e, call, source, in_pairs=bound["tmp_tile"] is not None)
    if source.is_column:
        return _single(e, call, source)
    spec, type_ = call.op.spec, tile_type(call)
    source = with_adjacent_rows(e, source)
    valid = (*source.valid[:-1], i64(1))
    if (picked := _picked(e)) is not None:
        return e.record(Tile(type_, valid, node=picked))
    node = ReduceNode(
        (source,), combine=folding(spec.combine), pair=pair_folding(spec.combine), start=start_of(spec, type_)
    )
    return e.record(Tile(type_, valid, node=node))


def _picked(e: FunctionEmitter) -> PickNode | None:
    """Return what takes one element of each row, where the plan has found that no other counts."""
    if e.step.picks is None:
        return None
    elements, index = (e.value(var) for var in (e.step.picks.elements, e.step.picks.index))
    assert isinstance(elements, Tile) and isinstance(index, Tile)
    nodes = [tile.node for tile in (*sources_of(elements), elements)]
    can_be_single = all(node is None or isinstance(node, (LoadNode, MapNode, ReduceNode, IndexNode)) for node in nodes)
    return PickNode((elements, index), first=e.step.picks.first) if can_be_single else None


def start_of(spec: OpSpec, type_: TileType) -> Any:
    """Return what folding nothing gives."""
    assert spec.start is not None
    return spec.start(type_.dtype)


def _single(e: FunctionEmitter, call: Call, source: Tile) -> Tile:
    """Record the folding of rows of one element, or of none."""
    spec, type_ = call.op.spec, tile_type(call)
    fold, start = folding(spec.combine), start_of(call.op.spec, type_)
    valid = (*source.valid[:-1], i64(1))

    def started(x: Lanes) -> Lanes:
        return fold(x.like(start), x)

    if static(source.valid[-1]) == 1:
        return recorded(e, type_, valid, started, [source], False)
    some = Scalar(e.b.compare("icmp sgt", source.valid[-1], i64(0)), BOOL)

    def function(x: Lanes, there: Lanes) -> Lanes:
        chosen = e.b.select(there.value, started(x).value, x.like(start).value)
        return Lanes(x.b, chosen, x.element)

    return recorded(e, type_, valid, function, [source, some], False)


def _columns(e: FunctionEmitter, call: Call, source: Tile, in_pairs: bool) -> Tile:
    """Emit the folding of columns, some vectors of them at a time."""
    type_ = tile_type(call)
    rows = ComputedRows(e, source) if _is_computed(e, source) else RowsInMemory(e, _lying(e, source))
    result = e.fresh(type_, known_or(type_, (*source.valid[:-2], i64(1), source.valid[-1])))
    fold = ColumnFold(e, call.op.spec, source, rows, result)
    pairs = PairedFold(fold, source.type.shape[-2]) if in_pairs and fold.is_stepwise else None
    with rows_of(e, source.valid[:-2]) as batch:
        fold.emit(batch, result.valid[-1], pairs)
    return result


def _is_computed(e: FunctionEmitter, tile: Tile) -> bool:
    """Return whether a tile is left to the fold that reads it."""
    return tile.place is None and isinstance(tile.node, (MapNode, RowsNode)) and not e.waits(tile)


def _lying(e: FunctionEmitter, source: Tile) -> Matrix:
    """Return where the rows of a tile lie, in its tensor or in the arena."""
    read = read_in_place(e, source)
    if read is not None and read.strides[-1] == i64(1):
        return read
    e.stored(source)
    return placed(e, with_adjacent_rows(e, source))


def loaded_lanes(
    e: FunctionEmitter, dtype: DataType, place: Place, indices: tuple[Value, ...], mask: Value | None
) -> Lanes:
    """Emit the loading of one vector of elements."""
    pointer = element_at(e, dtype, place, indices)
    return from_memory(e.b, load(e.b, vector(memory_type(dtype), e.lanes), pointer, dtype.get_byte(), mask), dtype)


class ColumnFold:
    """One folding of columns being emitted: the tile they are in, and the one of a row they go to."""

    def __init__(self, e: FunctionEmitter, spec: OpSpec, source: Tile, rows: Rows, result: Tile) -> None:
        assert spec.start is not None and result.place is not None
        self.e, self.dtype, self.rows, self.height = e, source.type.dtype, source.valid[-2], source.type.shape[-2]
        self.source, self.result = rows, result.place
        self.combine: Callable[[Lanes, Lanes], Lanes] = combine(spec.combine)
        self.start = literal(self.dtype, spec.start(self.dtype), e.lanes)
        self.is_stepwise = self.dtype in spec.stepwise

    def emit(self, batch: tuple[Value, ...], width: Value, pairs: PairedFold | None = None) -> None:
        """Emit the folding of one matrix of so many columns, from the first row down or in pairs."""
        if pairs is None and self._is_narrow(width):
            self._narrow(batch, static(width) or 0)
            return
        is_gathered = bool(self.source.gathered)
        if pairs is None and self._is_wide(width) and not is_gathered:
            done = self._down(batch, width)
        else:
            done = i64(0)
            for vectors in (*[GATHERED] * is_gathered, VECTORS, 2) if pairs is None else ():
                done = self._blocks(batch, done, width, vectors, None)
        done = self._blocks(batch, done, width, 1, pairs)
        left = self.e.b.op("sub", width, done)
        with self.e.b.when(self.e.b.compare("icmp sgt", left, i64(0))):
            self._block(batch, done, 1, first_lanes(self.e.b, left, self.e.lanes), pairs)

    def _is_wide(self, width: Value) -> bool:
        """Return whether rows are long, and their sums lie in memory as they are computed with."""
        return (static(width) or 0) >= WIDE and self.dtype in (FP32, INT32)

    def _is_narrow(self, width: Value) -> bool:
        """Return whether rows that may follow each other fill no vector, and there are many of them."""
        if not isinstance(self.source, RowsInMemory):
            return False
        stride, known = self.source.matrix.strides[-2], static(width) or 0
        may_follow = static(stride) in (None, known)
        return 0 < known < self.e.lanes and self.height >= TALL and may_follow and self.dtype in (FP32, INT32)

    def _narrow(self, batch: tuple[Value, ...], width: int) -> None:
        """Emit the folding of rows of a few columns, many at once where they follow each other."""
        assert isinstance(self.source, RowsInMemory)
        b = self.e.b
        follow = b.compare("icmp eq", self.source.matrix.strides[-2], i64(width))
        with b.when(follow):
            self._run(batch, width)
        with b.when(self.e.negated(follow)):
            self._block(batch, i64(0), 1, first_lanes(b, i64(width), self.e.lanes), None)

    def _run(self, batch: tuple[Value, ...], width: int) -> None:
        """Emit the folding of rows one after the other in memory: vectors of them, what those hold, and the rest."""
        b, more = self.e.b, max(VECTORS // width, 1)
        height = self.e.lanes * more
        part = self.e.arena.take(height * width * self.dtype.get_byte())
        strides = (*[i64(0)] * len(batch), i64(width), i64(1))
        scratch = RowsInMemory(self.e, Matrix(self.e.address(part[0]), strides, self.dtype))
        whole = b.op("and", self.rows, i64(-height))
        self._vectors(batch, whole, height, scratch.matrix.pointer, width * more)
        mask, total = first_lanes(b, i64(width), self.e.lanes), self.start
        for source, first, end in ((scratch, i64(0), i64(height)), (self.source, whole, self.rows)):
            loop = b.open_loop(first, end, i64(1), [total])
            found = self.row(batch, loop.index, i64(0), mask, source)
            (total,) = b.close_loop(loop, [self.folded(Lanes(b, loop.values[0], self.dtype), found).value])
        self._put(Lanes(b, total, self.dtype), batch, i64(0), mask)
        self.e.arena.give_back(part)

    def _vectors(self, batch: tuple[Value, ...], rows: Value, height: int, target: Value, count: int) -> None:
        """Emit the folding of so many vectors, which some rows fill, of all rows; leave them at an address."""
        b, places = self.e.b, [i64(number * self.e.lanes) for number in range(count)]
        loop = b.open_loop(i64(0), rows, i64(height), [self.start] * count)
        totals = [Lanes(b, total, self.dtype) for total in loop.values]
        found = [self.row(batch, loop.index, at, None) for at in places]
        folded = [self.folded(*each).value for each in zip(totals, found, strict=True)]
        for at, total in zip(places, b.close_loop(loop, folded), strict=True):
            store(b, total, b.offset(target, at, memory_type(self.dtype)), self.dtype.get_byte())

    def _down(self, batch: tuple[Value, ...], width: Value) -> Value:
        """Emit the folding of some whole rows at a time, one after the other; return how many columns are done."""
        b, known = self.e.b, static(width) or 0
        whole = i64(known // self.e.lanes * self.e.lanes)
        with b.loop(i64(0), whole, i64(self.e.lanes)) as column:
            self._put(Lanes(b, self.start, self.dtype), batch, column, None)
        some = b.op("and", self.rows, i64(-ROWS))
        for begin, end, count in ((i64(0), some, ROWS), (some, self.rows, 1)):
            with b.loop(begin, end, i64(count)) as first, b.loop(i64(0), whole, i64(self.e.lanes)) as column:
                rows = [b.op("add", first, i64(number)) if number else first for number in range(count)]
                total, kept = self._sum(batch, column), self.source.kept([column], None)
                for row in rows:
                    (found,) = self.source.vectors(batch, row, [column], None, kept)
                    total = self.folded(total, found)
                self._put(total, batch, column, None)
        return whole

    def _sum(self, batch: tuple[Value, ...], column: Value) -> Lanes:
        """Emit the loading of what has been folded so far."""
        return loaded_lanes(self.e, self.dtype, self.result, (*batch, i64(0), column), None)

    def _blocks(
        self, batch: tuple[Value, ...], begin: Value, width: Value, vectors: int, pairs: PairedFold | None
    ) -> Value:
        """Emit whole blocks of columns; return how many columns are done."""
        b, block = self.e.b, self.e.lanes * vectors
        whole = b.op("and", b.op("sub", width, begin), i64(-block))
        end = b.op("add", begin, whole)
        with b.loop(begin, end, i64(block)) as column:
            self._block(batch, column, vectors, None, pairs)
        return end

    def _block(
        self,
        batch: tuple[Value, ...],
        column: Value,
        vectors: int,
        mask: Value | None,
        pairs: PairedFold | None,
    ) -> None:
        if pairs is not None:
            self._put(pairs.folded(batch, column, mask), batch, column, mask)
            return
        b, lanes = self.e.b, self.e.lanes
        places = [b.op("add", column, i64(number * lanes)) if number else column for number in range(vectors)]
        kept = self.source.kept(places, mask)
        start = [Lanes(b, self.start, self.dtype)] * vectors
        if self.source.gathered and mask is None:
            found = self._gathered(batch, start, column, places, kept)
        else:
            found = self._rows(batch, (i64(0), self.rows), start, places, mask, kept)
        for at, total in zip(places, found, strict=True):
            self._put(total, batch, at, mask)

    def _rows(
        self,
        batch: tuple[Value, ...],
        span: tuple[Value, Value],
        totals: Sequence[Lanes],
        places: Sequence[Value],
        mask: Value | None,
        kept: Kept,
        ahead: Callable[[Value], None] = lambda row: None,
    ) -> list[Lanes]:
        """Emit the folding of some rows, each vector of columns into its total."""
        b = self.e.b
        loop = b.open_loop(*span, i64(1), [total.value for total in totals])
        ahead(loop.index)
        found = self.source.vectors(batch, loop.index, places, mask, kept)
        held = [Lanes(b, total, self.dtype) for total in loop.values]
        following = [self.folded(*each).value for each in zip(held, found, strict=True)]
        return [Lanes(b, total, self.dtype) for total in b.close_loop(loop, following)]

    def _gathered(
        self, batch: tuple[Value, ...], totals: Sequence[Lanes], column: Value, places: Sequence[Value], kept: Kept
    ) -> list[Lanes]:
        """Emit the folding of rows that indices name, each fetched ahead."""
        b, nbytes = self.e.b, len(places) * self.e.lanes * self.dtype.get_byte()
        near = b.intrinsic("llvm.smax", b.op("sub", self.rows, i64(FETCHED)), i64(0))

        def ahead(row: Value) -> None:
            fetch_gathered(self.e, self.source, b.op("add", row, i64(FETCHED)), column, nbytes)

        totals = self._rows(batch, (i64(0), near), totals, places, None, kept, ahead)
        return self._rows(batch, (near, self.rows), totals, places, None, kept)

    def row(
        self, batch: tuple[Value, ...], row: Value, column: Value, mask: Value | None, other: Rows | None = None
    ) -> Lanes:
        """Emit one vector of a row of what is folded, or of something else."""
        source = other or self.source
        return source.vectors(batch, row, [column], mask, source.kept([column], mask))[0]

    def folded(self, total: Lanes, lane: Lanes) -> Lanes:
        """Emit one step."""
        result = self.combine(total, lane)
        return rounded(result, self.dtype) if self.is_stepwise else result

    def _put(self, total: Lanes, batch: tuple[Value, ...], column: Value, mask: Value | None) -> None:
        lane = rounded(total, self.dtype)
        pointer = element_at(self.e, self.dtype, self.result, (*batch, i64(0), column))
        store(self.e.b, to_memory(lane), pointer, self.dtype.get_byte(), mask)


class PairedFold:
    """A folding of neighbouring rows, then of neighbouring results, and so on, in a scratch copy of one vector each."""

    def __init__(self, fold: ColumnFold, most_rows: int) -> None:
        self.fold, self.most_rows = fold, most_rows
        e = fold.e
        part = e.arena.take(most_rows * e.lanes * 4)
        self.scratch = e.address(part[0])
        e.arena.give_back(part)

    def folded(self, batch: tuple[Value, ...], column: Value, mask: Value | None) -> Lanes:
        """Emit the folding of one vector of columns."""
        fold, b = self.fold, self.fold.e.b
        rows = fold.rows
        self._write(i64(0), Lanes(b, fold.start, fold.dtype))
        with b.loop(i64(0), rows, i64(1)) as row:
            self._write(row, fold.row(batch, row, column, mask))
        levels = b.open_loop(i64(0), i64((self.most_rows - 1).bit_length()), i64(1), [rows])
        (left,) = levels.values
        half = b.op("ashr", left, i64(1))
        with b.loop(i64(0), half, i64(1)) as row:
            first = b.op("shl", row, i64(1))
            self._write(row, fold.folded(self._read(first), self._read(b.op("or", first, i64(1)))))
        is_odd = b.compare("icmp ne", b.op("and", left, i64(1)), i64(0))
        more = b.compare("icmp sgt", left, i64(1))
        with b.when(b.op("and", more, is_odd)):
            last = self._read(b.op("sub", left, i64(1)))
            self._write(i64(0), fold.folded(self._read(i64(0)), last))
        b.close_loop(levels, [b.select(more, half, left)])
        return self._read(i64(0))

    def _at(self, row: Value) -> Value:
        b, lanes = self.fold.e.b, self.fold.e.lanes
        return b.offset(self.scratch, b.op("mul", row, i64(lanes)), "float")

    def _write(self, row: Value, lane: Lanes) -> None:
        store(self.fold.e.b, lane.value, self._at(row), 4, None)

    def _read(self, row: Value) -> Lanes:
        b = self.fold.e.b
        return Lanes(b, load(b, self.fold.start.type, self._at(row), 4, None), self.fold.dtype)
