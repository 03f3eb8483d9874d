"""Reductions: rows folded as they are computed, columns once they are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.backends.cpu.copies import Bound, element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.emit import FunctionEmitter, lowers
from tilewright.backends.cpu.llvm import Value, i64, vector
from tilewright.backends.cpu.nodes import ReduceNode, level_of
from tilewright.backends.cpu.storage import first_lanes, load, store
from tilewright.backends.cpu.tiles import recorded
from tilewright.backends.cpu.traced import Lanes, combine, from_memory, literal, memory_type, rounded, to_memory
from tilewright.backends.cpu.values import Place, Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.core.op import OpSpec
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL

VECTORS = 4
"""How many vectors of columns are folded together."""


@lowers("tile:reduction")
def _reduction(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    if not call.op.spec.name.startswith("row"):
        return _columns(e, call, source)
    if source.is_column:
        return _single(e, call, source)
    spec, type_ = call.op.spec, tile_type(call)
    source = with_adjacent_rows(e, source)
    valid = (*source.valid[:-1], i64(1))
    if e.group is not None and e.group.rows != valid[:-1]:
        e.flush()
    node = ReduceNode(level_of(source), operand=source, combine=combine(spec.combine), start=start_of(spec, type_))
    return e.record(Tile(type_, valid, node=node))


def start_of(spec: OpSpec, type_: TileType) -> Any:
    """Return what folding nothing gives."""
    assert spec.start is not None
    return spec.start(type_.dtype)


def _single(e: FunctionEmitter, call: Call, source: Tile) -> Tile:
    """Record the folding of rows of one element, or of none."""
    spec, type_ = call.op.spec, tile_type(call)
    fold, start = combine(spec.combine), start_of(call.op.spec, type_)
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


def _columns(e: FunctionEmitter, call: Call, source: Tile) -> Tile:
    """Emit the folding of columns, some vectors of them at a time."""
    type_ = tile_type(call)
    e.stored(source)
    source = with_adjacent_rows(e, source)
    assert source.place is not None
    result = e.fresh(type_, known_or(type_, (*source.valid[:-2], i64(1), source.valid[-1])))
    width = result.valid[-1]
    fold = ColumnFold(e, call.op.spec, source, result)
    with rows_of(e, source.valid[:-2]) as batch:
        done = fold.blocks(batch, i64(0), width, VECTORS)
        done = fold.blocks(batch, done, width, 1)
        fold.rest(batch, done, width)
    return result


class ColumnFold:
    """One folding of columns being emitted."""

    def __init__(self, e: FunctionEmitter, spec: OpSpec, source: Tile, result: Tile) -> None:
        self.e = e
        self.source = source
        self.result = result
        self.fold: Callable[[Lanes, Lanes], Lanes] = combine(spec.combine)
        self.start = start_of(spec, source.type)

    def blocks(self, batch: tuple[Value, ...], begin: Value, width: Value, vectors: int) -> Value:
        """Emit whole blocks of columns; return how many columns are done."""
        b, block = self.e.b, self.e.lanes * vectors
        whole = b.op("and", b.op("sub", width, begin), i64(-block))
        end = b.op("add", begin, whole)
        with b.loop(begin, end, i64(block)) as column:
            self._block(batch, column, vectors, None)
        return end

    def rest(self, batch: tuple[Value, ...], begin: Value, width: Value) -> None:
        """Emit the columns that do not fill a vector."""
        b = self.e.b
        left = b.op("sub", width, begin)
        with b.when(b.compare("icmp sgt", left, i64(0))):
            self._block(batch, begin, 1, first_lanes(b, left, self.e.lanes))

    def _block(self, batch: tuple[Value, ...], column: Value, vectors: int, mask: Value | None) -> None:
        b, dtype, lanes = self.e.b, self.source.type.dtype, self.e.lanes
        starts = [literal(dtype, self.start, lanes)] * vectors
        loop = b.open_loop(i64(0), self.source.valid[-2], i64(1), starts)
        following: list[Value] = []
        for number, total in enumerate(loop.values):
            at = b.op("add", column, i64(number * lanes)) if number else column
            pointer = self._address(self.source, (*batch, loop.index, at))
            raw = load(b, vector(memory_type(dtype), lanes), pointer, dtype.get_byte(), mask)
            following.append(self.fold(Lanes(b, total, dtype), from_memory(b, raw, dtype)).value)
        for number, total in enumerate(b.close_loop(loop, following)):
            at = b.op("add", column, i64(number * lanes)) if number else column
            lane = rounded(Lanes(b, total, dtype), dtype)
            store(b, to_memory(lane), self._address(self.result, (*batch, i64(0), at)), dtype.get_byte(), mask)

    def _address(self, tile: Tile, indices: tuple[Value, ...]) -> Value:
        place = tile.place
        assert isinstance(place, Place)
        return element_at(self.e, tile.type.dtype, place, indices)
