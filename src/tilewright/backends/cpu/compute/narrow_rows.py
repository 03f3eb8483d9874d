"""Narrow rows: those that fill no vector, taken together where they follow each other in memory without a gap.

Ops on single elements do not see where a row ends: all the rows are one run of memory. Others take a column of as many
rows at once as a vector holds, whose elements are put side by side as they are read and back as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from tilewright.backends.cpu.compute.columns import Columns
from tilewright.backends.cpu.compute.lines import Lines
from tilewright.backends.cpu.compute.nodes import IndexNode, MapNode, ReduceNode, is_dear
from tilewright.backends.cpu.compute.prefetch import Prefetch
from tilewright.backends.cpu.compute.row_loops import RowLoop, TurnedLoop
from tilewright.backends.cpu.compute.row_memory import Pass, Row, Spread, row_start, times
from tilewright.backends.cpu.compute.storage import first_lanes
from tilewright.backends.cpu.compute.streaming import lines_pay
from tilewright.backends.cpu.compute.traced import Lanes, rounded
from tilewright.backends.cpu.compute.turned_tiles import TurnedColumns
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import Group, StoreSink, operands_of
from tilewright.backends.cpu.emit.signature import FEW
from tilewright.backends.cpu.emit.values import LoadNode, Tile, static
from tilewright.native.llvm import Builder, Value, element, i64, lanes, shuffled
from tilewright.records import mutable


def narrow_loop(e: FunctionEmitter, group: Group) -> Callable[[FunctionEmitter, Group], RowLoop] | None:
    """Return which loop takes rows of a group together, None where each is better taken by itself."""
    tiles = _computed(group)
    if not group.rows or not tiles or not all(_may_follow(*each) for each in _windows(group, tiles)):
        return None
    if _is_run(group, tiles, e.lanes):
        return RunLoop
    return NarrowLoop if _is_narrow(group, tiles, e.lanes) else None


def _computed(group: Group) -> list[Tile]:
    """Return all tiles that a group computes, reads or stores."""
    found: dict[Tile, None] = {}
    pending = [*(sink.tile for sink in group.stores), *group.places]
    while pending:
        tile = pending.pop()
        if tile not in found:
            found[tile] = None
            pending += operands_of(tile)
    return list(found)


def _windows(group: Group, tiles: list[Tile]) -> Iterator[tuple[LoadNode | StoreSink, Tile]]:
    """Return what a group reads of tensors row by row, and writes to them."""
    yield from ((t.node, t) for t in tiles if isinstance(t.node, LoadNode) and not _is_shared(t))
    yield from ((sink, sink.tile) for sink in group.stores)


def _is_shared(tile: Tile) -> bool:
    """Return whether all rows have the same of a tile."""
    return (1, *tile.type.shape)[-2] == 1


def _may_follow(of: LoadNode | StoreSink, tile: Tile) -> bool:
    """Return whether the rows of a tensor may follow each other without a gap."""
    strides, width = of.tensor.strides, static(tile.valid[-1])
    if width is None or len(strides) < 2 or strides[-1] != i64(1):
        return False
    return static(of.tensor.shape[-1]) in (None, width) and static(strides[-2]) in (None, width)


def _is_run(group: Group, tiles: list[Tile], lanes: int) -> bool:
    """Return whether a group computes each element from those at the same place, in rows of a few vectors."""
    width, valid = static(tiles[0].valid[-1]) or 0, tiles[0].valid
    if not (0 < width < FEW * lanes and width % lanes):
        return False
    plain = all(t.valid == valid and _is_plain(t) and not isinstance(t.node, (IndexNode, ReduceNode)) for t in tiles)
    places = [*group.places.values(), *(tile.place for tile in tiles if tile.place is not None)]
    packed = all(place.strides[-2:] == (width, 1) for place in places)
    return plain and packed and all(sink.mask is None for sink in group.stores)


def _is_narrow(group: Group, tiles: list[Tile], lanes: int) -> bool:
    """Return whether rows of a group have so few columns that many are worked on at once."""
    results = [*(sink.tile for sink in group.stores), *group.places]
    tall = all((1, *tile.type.shape)[-2] >= lanes for tile in results)
    most = FEW if any(map(is_dear, tiles)) else FEW - 1  # half a vector is folded more quickly by itself
    few = all(0 < (static(tile.valid[-1]) or 0) <= most for tile in tiles)
    stored = all(sink.mask is None and not sink.add for sink in group.stores)
    kept = all(tile.is_column for tile in group.places)
    return tall and few and stored and kept and all(map(_is_plain, tiles))


def _is_plain(tile: Tile) -> bool:
    """Return whether elements of a tile can be had in any order."""
    node = tile.node
    if isinstance(node, LoadNode):
        return node.apart is None
    if isinstance(node, IndexNode):
        return node.axis >= -2
    return node is None or isinstance(node, (MapNode, ReduceNode))


def rows_follow(b: Builder, group: Group) -> Value | None:
    """Return whether the rows of all tensors of a group follow each other without a gap, None where they surely do."""
    unsure = [(of.tensor.strides[-2], tile.valid[-1]) for of, tile in _windows(group, _computed(group))]
    tests = [b.compare("icmp eq", *each) for each in dict.fromkeys(unsure) if static(each[0]) is None]
    return reduce(lambda x, y: b.op("and", x, y), tests) if tests else None


@contextmanager
def without_gaps(group: Group) -> Generator[None, None, None]:
    """Have what is emitted inside know that the rows of all tensors of a group follow each other."""
    before = [(of, of.tensor, tile) for of, tile in _windows(group, _computed(group))]
    for of, tensor, tile in before:
        of.tensor = replace(tensor, strides=(*tensor.strides[:-2], tile.valid[-1], i64(1)))
    yield
    for of, tensor, _ in before:
        of.tensor = tensor


class RunLoop(RowLoop):
    """The rows of a group as one: of each tile, a run of memory."""

    def emit(self, *, streaming: bool, indices: tuple[Value, ...] = ()) -> None:
        """Emit the loops over the axes that are left."""
        if len(indices) + 1 < len(self.group.rows):
            super().emit(streaming=streaming, indices=indices)
            return
        first, rows = self._run(indices)
        ahead = Prefetch(self.b, self.group.rows, self.wanted if streaming else (), down=0)
        row, width = Row((*indices, first)), self.sinks[0].tile.valid[-1]
        known = static(rows)
        elements = times(self.b, rows, width) if known is None else i64(known * (static(width) or 0))
        RunColumns(self.b, self.e.lanes, row, elements, [], self.sinks, streaming, ahead).emit()

    def _run(self, indices: tuple[Value, ...]) -> tuple[Value, Value]:
        """Return the first row that is computed, and how many are."""
        first, end = self._range(self.group.rows[-1], is_outermost=all(static(at) == 0 for at in indices))
        return first, end if static(first) == 0 else self.b.op("sub", end, first)

    def _is_wide(self, sink: StoreSink) -> bool:
        """Return True: a run has more than one element, though a row may not."""
        return True

    def _pays(self, sink: StoreSink) -> Value | None:
        """Return whether a run begins with a line of a large tensor, None: surely not."""
        first, _ = self._run(indices := (i64(0),) * (len(self.group.rows) - 1))
        begin = row_start(self.b, sink, Row((*indices, first)))
        return lines_pay(self.e, sink.tensor, begin, sink.tensor.strides[:-2], self.read)


@mutable
class RunColumns(Columns):
    """The elements of all rows being emitted, as if they were the columns of one."""

    def _short(self) -> list[Lanes]:
        """Emit a short run as a long one, where only blocks of it are whole lines."""
        return self._long() if self.streaming else super()._short()

    def _here(self, column: Value, mask: Value | None = None) -> Pass:
        return Pass(self.row, column, self.lanes, mask, self.spread, is_run=True)


@mutable
class NarrowColumns(TurnedColumns):
    """The few columns of a few rows being emitted, one after the other, and written together."""

    def emit(self) -> None:
        """Emit the pass, leaving what is folded among the rows' scalars."""
        self.spread, count = Spread(self.b.mark()), static(self.width) or 0
        folded, woven = [self._start(f, self.lanes) for f in self.folds], Woven(self.b, count)
        for column in range(count):
            folded = self._step(self._here(i64(column)), folded, woven)
        for fold, total in zip(self.folds, folded, strict=True):
            self.row.scalars[fold.tile] = rounded(total, fold.tile.type.dtype)


class Woven(Lines):
    """Columns of a few rows that are written once all of them are there, row after row."""

    def __init__(self, b: Builder, count: int) -> None:
        super().__init__(b)
        self.count = count

    def put(self, key: object, value: Value, pointer: Value, size: int) -> None:
        """Emit the store of all columns with the last of them."""
        parts, begin = self.part(key, value, pointer)
        if len(parts) < self.count:
            return
        rows = lanes(value.type)
        for number in range(self.count):
            places = [divmod(number * rows + lane, self.count) for lane in range(rows)]
            taken = parts[0]
            for column, part in enumerate(parts):
                order = [row + rows * (column > 0) if at == column else lane for lane, (row, at) in enumerate(places)]
                taken = shuffled(self.b, taken, part, order)
            self.b.store(taken, self.b.offset(begin, i64(number * rows), element(value.type)), size)


class NarrowLoop(TurnedLoop):
    """The rows of a group, as many at once as a vector holds, then those that are left."""

    columns = NarrowColumns

    def emit(self, *, streaming: bool, indices: tuple[Value, ...] = ()) -> None:
        """Emit the loops over the axes that are left."""
        b, lanes = self.b, self.e.lanes
        if len(indices) + 1 < len(self.group.rows):
            RowLoop.emit(self, streaming=streaming, indices=indices)
            return
        first, end = self._range(self.group.rows[-1], is_outermost=all(static(at) == 0 for at in indices))
        whole = b.op("add", first, b.op("and", b.op("sub", end, first), i64(-lanes)))
        with b.loop(first, whole, i64(lanes)) as row:
            self._row(Row((*indices, row)), streaming)
        with b.when(b.compare("icmp slt", whole, end)):
            self._row(Row((*indices, whole), there=first_lanes(b, b.op("sub", end, whole), lanes)), streaming)

    def _pays(self, sink: StoreSink) -> Value | None:
        """Return None: columns of a few rows are no lines."""
        return None
