"""Stepped rows: a few rows taken through one pass before any of them is through the next.

What a row is folded to, and what is computed of that, is known late and takes little to compute: by itself a row would
wait for it. Of a few rows it is known of the first ones by when the next pass begins with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilewright.backends.cpu.compute.nodes import ReduceNode
from tilewright.backends.cpu.compute.row_loops import RowLoop
from tilewright.backends.cpu.compute.row_memory import Row, window
from tilewright.backends.cpu.compute.streaming import is_small
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import Group, SaveSink, level_of, operands_of
from tilewright.backends.cpu.emit.values import LoadNode, Place, Tile, static
from tilewright.native.llvm import I1, I8, Value, i64

MOST = 8
"""How many rows are taken at most."""
FITS, PAIR = 12 << 10, 24 << 10
"""Bytes that those rows may take, and two, with what all rows share: the next pass finds them in the first cache.

On one core of a Zen 5 layer norm of 128 x 768 floats takes 6.9 us, and 9.0 a row at a time, log-softmax 13 and 15.5.
"""
FAR = 2 << 10
"""The same of rows that come from memory or go there: while one waits for that another is better computed."""


class SteppedLoop(RowLoop):
    """The loop over the rows of a group of which each pass goes over a few before the next one does."""

    def __init__(self, e: FunctionEmitter, group: Group) -> None:
        self.numbers: dict[Tile, Value] = {}
        """Where the numbers that rows have been folded to are kept for later passes."""
        super().__init__(e, group)

    def _steps(self) -> int:
        extent = static(self.group.rows[-1]) if self.group.rows else 1
        if extent == 1 or not any(isinstance(tile.node, ReduceNode) for tile in self.wanted) or self._may_meet():
            return 1
        return self._steps_in(FITS, PAIR)

    def _steps_in(self, room: int, of_two: int) -> int:
        """Return how many rows are taken at a time into so many bytes, a power of two."""
        lying = self._lying()
        shared, own = (_row_bytes(t for t in lying if _is_shared(t) == of_all) for of_all in (True, False))
        fit, two = ((nbytes - shared) // max(own, 1) for nbytes in (room, of_two))
        few = min(MOST, static(self.group.rows[-1]) or MOST, max(fit, min(two, 2)))
        return 1 << max(few, 1).bit_length() - 1

    def _lying(self) -> set[Tile]:
        """Return the tiles of which a later pass may read a row again that lies in memory."""
        operands = {operand for tile in self.wanted for operand in operands_of(tile) if operand.place is not None}
        return {t for t in (*operands, *self._loads(), *self.kept, *self.group.places) if not t.is_column}

    def _loads(self) -> list[Tile]:
        return [tile for tile in self.wanted if isinstance(tile.node, LoadNode) and not tile.is_column]

    def _is_far(self) -> bool:
        """Return whether rows surely come from memory."""
        tensors = [window(tile)[0] for tile in self._loads()]
        return any(not is_small(t) and None not in map(static, t.shape) for t in tensors)

    def _may_meet(self) -> bool:
        """Return whether stores of different passes go to the same tensor, where the last of them may have to stay."""
        roots = dict.fromkeys((sink.tensor.root, level_of(sink.tile)) for sink in self.group.stores)
        return len({root for root, _ in roots}) < len(roots)

    def _row_place(self, tile: Tile) -> Place:
        """Return room for each of a few rows of a tile, for one where all rows share it."""
        if self.steps == 1 or _is_shared(tile):
            return super()._row_place(tile)
        return Place(self._room(tile, self.steps), (*(0 for _ in tile.type.shape[:-2]), tile.type.shape[-1], 1))

    def emit(self, *, streaming: bool, indices: tuple[Value, ...] = ()) -> None:
        """Emit the loops over the axes that are left."""
        if self.steps == 1 or len(indices) + 1 < len(self.group.rows):
            super().emit(streaming=streaming, indices=indices)
            return
        near, sinks, b = self.steps, self.sinks, self.b
        self.steps = min(near, self._steps_in(FAR, FAR)) if streaming or self._is_far() else near
        first, end = self._range(self.group.rows[-1], is_outermost=all(static(at) == 0 for at in indices))
        with b.loop(first, end, i64(self.steps)) as begin:
            self.sinks = [self._from(begin, sink) if isinstance(sink, SaveSink) else sink for sink in sinks]
            if self.steps == 1:
                self._row(Row((*indices, begin)), streaming)
                self._count()
            else:
                self._few(begin, b.intrinsic("llvm.smin", b.op("add", begin, i64(self.steps)), end), indices, streaming)
        self.steps, self.sinks = near, sinks

    def _few(self, begin: Value, end: Value, indices: tuple[Value, ...], streaming: bool) -> None:
        """Emit the rows between two, one pass after the other."""
        numbers: dict[Tile, Lanes] = {}
        for level in self._busy_levels():
            with self.b.loop(begin, end, i64(1)) as index:
                at = self.b.op("sub", index, begin)
                numbers |= self._step(Row((*indices, index)), at, level, numbers, streaming)

    def _busy_levels(self) -> list[int]:
        """Return the levels at which something is computed, or done with what has been."""
        nodes = [tile.node for tile in self.wanted if isinstance(tile.node, ReduceNode)]
        scalars = [level_of(tile) for tile in self.wanted if tile.is_column and not isinstance(tile.node, ReduceNode)]
        wide = [level_of(sink.tile) for sink in self.sinks if not sink.tile.is_column]
        return sorted({*(node.level for node in nodes), *scalars, *wide})

    def _from(self, begin: Value, sink: SaveSink) -> SaveSink:
        """Return a sink as it is for the rows from one on, of which there is room for a few."""
        if sink.tile not in self.kept or _is_shared(sink.tile):
            return sink
        place, size = sink.place, sink.tile.type.dtype.get_byte()
        back = self.b.op("mul", begin, i64(-place.strides[-2] * size))
        return SaveSink(sink.tile, sink.span, place=Place(self.b.offset(place.pointer, back, I8), place.strides))

    def _step(
        self, row: Row, number: Value, level: int, numbers: Mapping[Tile, Lanes], streaming: bool
    ) -> Mapping[Tile, Lanes]:
        """Emit one level of a row, with the numbers that earlier ones have kept of it; return what it keeps itself."""
        self._begin(row)
        row.scalars |= {tile: self._kept_number(tile, like, number) for tile, like in numbers.items()}
        saved = [sink for sink in self.sinks if isinstance(sink, SaveSink) and not sink.tile.is_column]
        row.saved |= {sink.tile: sink.place for sink in saved if level_of(sink.tile) < level}
        self._level(row, level, streaming)
        if level == self._busy_levels()[-1]:
            self._count()
            return {}
        found = {tile: lane for tile, lane in row.scalars.items() if tile not in numbers}
        for tile, lane in found.items():
            value = self.b.convert("zext", lane.value, I8) if lane.value.type == I1 else lane.value
            self.b.store(value, self._number_at(tile, value.type, number), 1)
        return found

    def _kept_number(self, tile: Tile, like: Lanes, number: Value) -> Lanes:
        """Emit the load of a number that was kept of a row."""
        type_ = I8 if like.value.type == I1 else like.value.type
        value = self.b.load(type_, self._number_at(tile, type_, number), 1)
        value = self.b.convert("trunc", value, I1) if like.value.type == I1 else value
        return Lanes(self.b, value, like.element, reach=like.reach, bounds=like.bounds)

    def _number_at(self, tile: Tile, type_: str, number: Value) -> Value:
        """Return where a number of a row is kept: in the function's frame, as all of them are few."""
        if tile not in self.numbers:
            self.numbers[tile] = self.b.slot(f"[{MOST} x {type_}]")
        return self.b.offset(self.numbers[tile], number, type_)


def _is_shared(tile: Tile) -> bool:
    """Return whether all rows have the same of a tile."""
    return (1, *tile.type.shape)[-2] == 1


def _row_bytes(tiles: Iterable[Tile]) -> int:
    """Return how many bytes a row of each takes."""
    return sum(tile.type.shape[-1] * tile.type.dtype.get_byte() for tile in tiles)
