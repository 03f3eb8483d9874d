"""Positions: the first element of a row or column that its folding gives.

A row is folded, then looked through for what that gave, up to where it is found. Columns are looked through once, some
vectors of them at a time, with the best element of each so far and its row.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.copies import element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.foldings import folding, pair_folding
from tilewright.backends.cpu.compute.nodes import IndexNode, MapNode, ReduceNode, SearchNode
from tilewright.backends.cpu.compute.reduce import VECTORS, loaded_lanes, start_of
from tilewright.backends.cpu.compute.storage import first_lanes, store
from tilewright.backends.cpu.compute.tiles import recorded
from tilewright.backends.cpu.compute.traced import Lanes, combine
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import level_of
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import literal
from tilewright.backends.cpu.emit.values import Node, Tile, static
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL, INT32, DataType
from tilewright.native.llvm import I32, Value, i64
from tilewright.ops.position import NOTHING


@lowers("tile:position")
def _position(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    axis = -1 if call.op.spec.name.startswith("row") else -2
    if static(source.valid[axis]) is None:
        e.fail(e.b.compare("icmp sle", source.valid[axis], i64(0)), NOTHING, call)
    return _columns(e, call, source) if axis == -2 else _rows(e, call, source)


def _rows(e: FunctionEmitter, call: Call, source: Tile) -> Tile:
    """Record the folding of rows, and the least column that holds what it gives."""
    type_, spec = tile_type(call), call.op.spec
    valid = (*source.rows, i64(1))
    if source.is_column:
        return recorded(e, type_, valid, _first, [source], False)
    source = with_adjacent_rows(e, source)
    best_type = TileType(type_.shape, source.type.dtype, type_.valid)
    fold = ReduceNode(
        (source,), combine=folding(spec.combine), pair=pair_folding(spec.combine), start=start_of(spec, best_type)
    )
    best = e.record(Tile(best_type, valid, node=fold))
    level = max(level_of(source), level_of(best))
    matches = _like(source, BOOL, MapNode((source, best), level=level, function=combine("equal")))
    numbers = _like(source, INT32, IndexNode())
    found = _like(source, INT32, MapNode((source, best, numbers), level=level, function=_found))
    first = SearchNode((found,), combine=combine("minimum"), start=INT32.limits[1], matches=matches)
    return e.record(Tile(type_, valid, node=first), goes_on=True)


def _like(source: Tile, dtype: DataType, node: Node) -> Tile:
    """Return a node's elements as a tile of another's extents."""
    return Tile(TileType(source.type.shape, dtype, source.type.valid), source.valid, node=node)


def _first(x: Lanes) -> Lanes:
    return Lanes(x.b, literal(INT32, 0, x.count), INT32)


def _found(x: Lanes, best: Lanes, numbers: Lanes) -> Lanes:
    """Return the number of each column that holds the best element; NaN is better than all others."""
    here = x == best
    if x.element.is_float():
        here = here | (x != x)
    return Lanes(x.b, x.b.select(here.value, numbers.value, numbers.like(INT32.limits[1]).value), INT32)


def _columns(e: FunctionEmitter, call: Call, source: Tile) -> Tile:
    """Emit the search through columns, some vectors of them at a time."""
    type_ = tile_type(call)
    e.stored(source)
    source = with_adjacent_rows(e, source)
    result = e.fresh(type_, known_or(type_, (*source.valid[:-2], i64(1), source.valid[-1])))
    search = ColumnSearch(e, source, result, larger=call.op.spec.combine == "maximum")
    with rows_of(e, source.valid[:-2]) as batch:
        search.emit(batch)
    return result


class ColumnSearch:
    """One search through the columns of a tile being emitted."""

    def __init__(self, e: FunctionEmitter, source: Tile, result: Tile, *, larger: bool) -> None:
        assert source.place is not None and result.place is not None
        self.e, self.dtype, self.larger = e, source.type.dtype, larger
        self.rows, self.width = source.valid[-2:]
        self.source, self.result = source.place, result.place

    def emit(self, batch: tuple[Value, ...]) -> None:
        """Emit the search through one matrix."""
        b, done = self.e.b, i64(0)
        for vectors in (VECTORS, 1):
            block = self.e.lanes * vectors
            end = b.op("add", done, b.op("and", b.op("sub", self.width, done), i64(-block)))
            with b.loop(done, end, i64(block)) as column:
                self._block(batch, column, vectors, None)
            done = end
        left = b.op("sub", self.width, done)
        with b.when(b.compare("icmp sgt", left, i64(0))):
            self._block(batch, done, 1, first_lanes(b, left, self.e.lanes))

    def _block(self, batch: tuple[Value, ...], column: Value, vectors: int, mask: Value | None) -> None:
        b, lanes = self.e.b, self.e.lanes
        places = [b.op("add", column, i64(number * lanes)) if number else column for number in range(vectors)]
        first = [self._row(batch, i64(0), at, mask).value for at in places]
        loop = b.open_loop(i64(1), self.rows, i64(1), [*first, *[literal(INT32, 0, lanes)] * vectors])
        number = b.splat(b.convert("trunc", loop.index, I32), lanes)
        best, where = loop.values[:vectors], loop.values[vectors:]
        following: list[Value] = []
        found: list[Value] = []
        for at, held, place in zip(places, best, where, strict=True):
            given = self._row(batch, loop.index, at, mask)
            is_better = self._is_better(given, Lanes(b, held, self.dtype))
            following.append(b.select(is_better, given.value, held))
            found.append(b.select(is_better, number, place))
        ends = b.close_loop(loop, [*following, *found])
        for at, place in zip(places, ends[vectors:], strict=True):
            store(b, place, element_at(self.e, INT32, self.result, (*batch, i64(0), at)), 4, mask)

    def _row(self, batch: tuple[Value, ...], row: Value, column: Value, mask: Value | None) -> Lanes:
        return loaded_lanes(self.e, self.dtype, self.source, (*batch, row, column), mask)

    def _is_better(self, given: Lanes, held: Lanes) -> Value:
        """Return where an element takes the place of the one that is held; nothing takes that of NaN."""
        b = self.e.b
        word = "gt" if self.larger else "lt"
        if not self.dtype.is_float():
            sign = "s" if self.dtype.is_signed_int() else "u"
            return b.compare(f"icmp {sign}{word}", given.value, held.value)
        better = b.compare(f"fcmp u{word}", given.value, held.value)
        return b.op("and", better, b.compare("fcmp ord", held.value, held.value))
