"""Row loops: the rows of a group one after the other, or as many at once as a vector holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from tilewright.backends.cpu.compute.columns import Columns, Fold, drained, lane_of
from tilewright.backends.cpu.compute.nodes import MapNode, ReduceNode, RowsNode, SearchNode, is_dear, is_long
from tilewright.backends.cpu.compute.prefetch import Prefetch
from tilewright.backends.cpu.compute.row_memory import Pass, Row, row_start
from tilewright.backends.cpu.compute.streaming import is_known_large, is_small, streaming_pays
from tilewright.backends.cpu.compute.turned_tiles import TurnedColumns, down
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import Group, SaveSink, Sink, StoreSink, level_of, operands_of
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Place, Tensor, Tile, static
from tilewright.backends.cpu.emit.work import ELEMENTS, LONG, PIECE
from tilewright.native.llvm import Value, i64


class RowLoop:
    """The loop over the rows of a group: which tiles it computes, and what it does with them."""

    columns: type[Columns] = Columns
    """What emits a pass over the columns of a row."""

    @property
    def searching(self) -> type[Columns]:
        """What emits one that may end early."""
        from tilewright.backends.cpu.compute.searches import SearchColumns  # which few kernels have

        return SearchColumns

    def __init__(self, e: FunctionEmitter, group: Group) -> None:
        self.e, self.b, self.group = e, e.b, group
        self.parts: list[Part] = []
        """What the rows that are kept for later passes take of the arena."""
        self.wanted = self._wanted()
        self.kept = [tile for tile in self.wanted if self._is_kept(tile)]
        """The tiles of which a row is stored for later passes."""
        self.steps = self._steps()
        """How many rows are taken through a pass before any of them is through the next."""
        kept = {tile: self._row_place(tile) for tile in self.kept}
        saved = [SaveSink(tile, place=place) for tile, place in (group.places | kept).items()]
        self.sinks: list[Sink] = [*saved, *group.stores]
        self.top = max([level_of(tile) for tile in self.wanted] or [0])

    def _wanted(self) -> list[Tile]:
        """Return the recorded tiles that a store or a later reader needs, in order."""
        needed: set[Tile] = set()
        pending = [*(s.tile for s in self.group.stores), *self.group.places]
        while pending:
            tile = pending.pop()
            if tile.node is None or tile in needed:
                continue
            needed.add(tile)
            pending += operands_of(tile)
        return [t for t in self.group.tiles if t in needed]

    def _steps(self) -> int:
        return 1

    def _is_kept(self, tile: Tile) -> bool:
        """Return whether a row of a tile is stored for later passes rather than computed again."""
        if tile in self.group.places or tile.is_column or isinstance(tile.node, ReduceNode):
            return False
        readers = [_level(t) for t in self.wanted if tile in operands_of(t)]
        readers += [_level(s.tile) for s in self.group.stores if s.tile is tile]
        return any(level > _level(tile) for level in readers) and (is_dear(tile) or is_long(tile))

    def _row_place(self, tile: Tile) -> Place:
        """Return room for one row of a tile: every row uses the same."""
        return Place(self._room(tile, 1), (*(0 for _ in tile.type.shape[:-1]), 1))

    def _room(self, tile: Tile, rows: int) -> Value:
        """Return the address of room for so many rows of a tile."""
        part = self.e.arena.take(rows * tile.type.shape[-1] * tile.type.dtype.get_byte())
        self.parts.append(part)
        self.e.arena.hold(part, tile)
        return self.e.address(part[0])

    def streams(self) -> Value | None:
        """Return whether the stores of rows are all large and aligned enough to pass the caches, None for never."""
        wide = [sink for sink in self.group.stores if self._is_wide(sink)]
        paying = [None if self._is_read(sink) else self._pays(sink) for sink in wide]
        known = [pays for pays in paying if pays is not None]
        return reduce(lambda x, y: self.b.op("and", x, y), known) if known and len(known) == len(wide) else None

    def _is_wide(self, sink: StoreSink) -> bool:
        """Return whether a sink writes several elements at once."""
        return not sink.tile.is_column

    def _is_read(self, sink: StoreSink) -> bool:
        """Return whether what a sink writes to is read as well: it is in the caches then, and would be pushed out."""
        return sink.add or any(tensor.root is sink.tensor.root for tensor in self.read)

    @property
    def read(self) -> list[Tensor]:
        """Return what rows are loaded from."""
        return [tile.node.tensor for tile in self.group.tiles if isinstance(tile.node, LoadNode)]

    def _pays(self, sink: StoreSink) -> Value | None:
        """Return whether the rows of a sink are whole lines of a large tensor, None: surely not."""
        tensor, column = sink.tensor, sink.offsets[-1]
        begin = self.b.offset(tensor.pointer, column, memory_type(tensor.dtype))
        if sink.mask is not None:
            return None
        return streaming_pays(self.e, tensor, begin, static(sink.tile.valid[-1]), self.read)

    def emit(self, *, streaming: bool, indices: tuple[Value, ...] = ()) -> None:
        """Emit the loops over the axes that are left."""
        if len(indices) == len(self.group.rows):
            self._row(Row(indices), streaming)
            self._count()
            return
        extent = self.group.rows[len(indices)]
        if static(extent) == 1:
            self.emit(streaming=streaming, indices=(*indices, i64(0)))
            return
        with self.b.loop(*self._range(extent, is_outermost=all(static(at) == 0 for at in indices)), i64(1)) as index:
            self.emit(streaming=streaming, indices=(*indices, index))

    def _range(self, extent: Value, *, is_outermost: bool) -> tuple[Value, Value]:
        """Return from where to where a loop goes: of rows that several blocks divide, through this one's."""
        if not (self.e.in_rows and is_outermost and self.group.stores):
            return i64(0), extent
        from tilewright.backends.cpu.compute.blocks import share_of

        first, count = share_of(self.e, extent)
        return first, self.b.op("add", first, count)

    def _count(self) -> None:
        """Emit the count of a row's work, where all the rows are much."""
        row = 1 + sum(tile.type.shape[-1] for tile in self.group.tiles) // ELEMENTS
        rows = max((math.prod(tile.type.shape[:-1]) for tile in self.group.tiles), default=0)
        if row * rows >= LONG:
            self.e.worked(min(row, PIECE))

    def _row(self, row: Row, streaming: bool) -> None:
        self._begin(row)
        for level in range(self.top + 1):
            self._level(row, level, streaming)

    def _level(self, row: Row, level: int, streaming: bool) -> None:
        """Emit what is computed of a row at a level: its scalars, its passes, and what is done with what they fold."""
        for tile in self.wanted:
            if tile.is_column and not isinstance(tile.node, ReduceNode) and _level(tile) == level:
                row.scalars[tile] = lane_of(self.b, tile, self._here(row))
        now = [s for s in self.sinks if not s.tile.is_column and level_of(s.tile) == level]
        self._columns(row, level, now, streaming)
        row.saved |= {sink.tile: sink.place for sink in now if isinstance(sink, SaveSink)}
        for sink in self.sinks:
            if sink.tile.is_column and level_of(sink.tile) == level + isinstance(sink.tile.node, ReduceNode):
                drained(self.b, sink, self._here(row))

    def _here(self, row: Row) -> Pass:
        """Return where the elements of a row lie of tiles of one column."""
        return Pass(row, i64(0))

    def _begin(self, row: Row) -> None:
        """Emit where the row begins of every tensor that it reads or writes: once, for all of its passes."""
        for tile in self.wanted:
            if isinstance(tile.node, LoadNode) and not tile.is_column:
                row.starts[tile] = row_start(self.b, tile, row)
            elif isinstance(tile.node, RowsNode):
                from tilewright.backends.cpu.compute.row_copies import fetch_ahead  # only gathers need it

                fetch_ahead(self.e, tile.node.later(row.indices[-1]), tile.type.shape[-1] * tile.type.dtype.get_byte())
                row.starts[tile] = tile.node.begin(row.indices[-1])
        for sink in self.sinks:
            if isinstance(sink, StoreSink) and not sink.tile.is_column:
                row.starts[sink] = row_start(self.b, sink, row)

    def _columns(self, row: Row, level: int, sinks: Sequence[Sink], streaming: bool) -> None:
        """Emit the passes of one level, one for each width among its tiles."""
        reduces = [Fold(t, t.node) for t in self.wanted if isinstance(t.node, ReduceNode) and t.node.level == level]
        busiest = self._busiest_pass()
        fetched = self.wanted if (streaming or self._fetches()) and level == busiest else ()
        down = self.steps if busiest > 0 else 0
        ahead = Prefetch(self.b, self.group.rows, fetched, down=down, goes_on=self.e.row is not None)
        widths = [*(f.width for f in reduces), *(s.tile.valid[-1] for s in sinks)]
        is_one = any(isinstance(sink, StoreSink) and sink.updates for sink in sinks)  # all as wide: the plan knows that
        for width in dict.fromkeys(widths[:1] if is_one else widths):
            folds = [fold for fold in reduces if is_one or fold.width == width]
            now = [sink for sink in sinks if is_one or sink.tile.valid[-1] == width]
            searches = [f for f in folds if isinstance(f.node, SearchNode)]
            others = [f for f in folds if f not in searches]
            if others or now:
                self.columns(self.b, self.e.lanes, row, width, others, now, streaming, ahead).emit()
            nothing = Prefetch(self.b, self.group.rows, (), down=0)  # nobody knows how far a search goes
            for search in searches:
                self.searching(self.b, self.e.lanes, row, width, [search], [], False, nothing).emit()

    def _busiest_pass(self) -> int:
        """Return the level that takes longest of those that find their row in the cache: it has the next one fetched.

        A pass that waits for memory leaves the arithmetic idle, and the other way round. Where no pass computes much
        it is one that only folds, else the last one, which waits for what it writes: a layer norm of 4096 x 4096 floats
        takes 3.5 ms on a Zen 5, and 3.9 where its last pass has them fetched.
        """
        wide = [tile.node for tile in self.wanted if not tile.is_column]
        dear = [node.level for node in wide if isinstance(node, MapNode) and node.dear and node.level > 0]
        folds = [tile.node for tile in self.wanted if isinstance(tile.node, ReduceNode)]
        folded = [node.level for node in folds if not isinstance(node, SearchNode)]
        written = [level_of(sink.tile) for sink in self.sinks if not sink.tile.is_column]
        only_folded = [level for level in folded if level > 0 and level not in written]
        return min(dear, default=max(only_folded, default=max([*folded, *written, 0])))

    def _fetches(self) -> bool:
        """Return whether what a row waits for is what it reads: what is written stays in the caches, small or not."""
        written = [sink.tensor for sink in self.sinks if isinstance(sink, StoreSink) and not sink.tile.is_column]
        return all(map(is_small, written)) or all(map(is_known_large, written))


class TurnedLoop(RowLoop):
    """The loop over the rows of a group whose tiles lie on their side: as many at once as a vector holds."""

    columns = TurnedColumns

    @property
    def searching(self) -> type[Columns]:
        """What emits one that may end early."""
        return TurnedColumns

    def _row_place(self, tile: Tile) -> Place:
        """Return room for a few rows of a tile."""
        return Place(self._room(tile, self.e.lanes), (*(0 for _ in tile.type.shape[:-1]), self.e.lanes))

    def emit(self, *, streaming: bool, indices: tuple[Value, ...] = ()) -> None:
        """Emit the loop over vectors of rows."""
        (rows,) = self.group.rows
        with self.b.loop(i64(0), rows, i64(self.e.lanes)) as first:
            self._row(Row((first,)), streaming)

    def _here(self, row: Row) -> Pass:
        return Pass(row, i64(0), self.e.lanes, row.there, down=down)


def _level(tile: Tile) -> int:
    """Return the pass in which a tile is computed; what is in memory already can be used in any."""
    return 0 if tile.node is None else tile.node.level
