"""Groups: runs of row-by-row ops that become one loop over rows.

Nothing in a group is computed when it is recorded. When something else needs a result, the group is emitted: one loop
over the rows, in each row as many passes over the columns as its reductions force, in each pass whole chains of ops in
registers. Only what is read later, or too dear to compute twice, is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from tilewright.backends.cpu.compute.atomics import add_each
from tilewright.backends.cpu.compute.nodes import (
    Group,
    LoadNode,
    MapNode,
    ReduceNode,
    SaveSink,
    Sink,
    StoreSink,
    level_of,
    operands_of,
)
from tilewright.backends.cpu.compute.storage import load, store
from tilewright.backends.cpu.compute.traced import (
    Lanes,
    Shared,
    compute_type,
    from_memory,
    literal,
    memory_type,
    rounded,
    to_memory,
)
from tilewright.backends.cpu.host.values import Place, Scalar, Tensor, Tile, static
from tilewright.dtypes import DataType
from tilewright.native.llvm import Builder, Value, i64, mangled, vector

UNROLL, CHAINS = 2, 4
"""How many vectors of a row are computed together, and how many where each waits for the one folded before it."""
LINE = 64
AHEAD = 1024
"""Bytes between what a pass reads and what it has fetched, where memory is the limit."""
FAR = 8192
"""The same, where every row begins on another page: it takes longer to be found."""
STREAMED = 4 << 20
"""Bytes from which on an output is written past the caches: it would only push out what is read again."""


@dataclass
class Row:
    """One row being emitted: its indices, and what has been computed once for it."""

    indices: tuple[Value, ...]
    starts: dict[Tile | Sink, Value] = field(default_factory=dict["Tile | Sink", Value])
    """Where the row begins of what a tile is loaded from, and of what a sink writes to."""
    scalars: dict[Tile, Lanes] = field(default_factory=dict[Tile, Lanes])
    saved: dict[Tile, Place] = field(default_factory=dict[Tile, Place])


@dataclass
class Spread:
    """What is the same in all columns of a row, in every lane: emitted at a mark ahead of the loop over columns."""

    mark: int
    lanes: dict[Tile | Scalar, Lanes] = field(default_factory=dict["Tile | Scalar", Lanes])


@dataclass
class Pass:
    """Several columns of a row being emitted together."""

    row: Row
    column: Value
    count: int = 1
    mask: Value | None = None
    spread: Spread | None = None
    known: dict[Tile, Lanes] = field(default_factory=dict[Tile, Lanes])


class GroupEmitter:
    """Emits one group into a function."""

    def __init__(
        self,
        b: Builder,
        lanes: int,
        group: Group,
        places: dict[Tile, Place],
        row_place: Callable[[Tile], Place],
        after_row: Callable[[], None],
    ) -> None:
        self.b = b
        self.lanes = lanes
        self.group = group
        self.places = places
        """Where results that outlive the group go."""
        self.row_place = row_place
        self.after_row = after_row
        self.can_stream = lanes >= 8
        self.streaming = False
        self.prefetched: list[Tile] = []
        self.in_next_row = False

    def emit(self) -> None:
        """Emit the loop over rows."""
        wanted = self._wanted()
        sinks = [*self.group.stores, *(SaveSink(t, place=p) for t, p in self.places.items())]
        kept = {t: self.row_place(t) for t in wanted if self._is_kept(t, wanted)}
        sinks += [SaveSink(t, place=p) for t, p in kept.items()]
        with self._guarded():
            streams = self._streams()
            if streams is None:
                self._rows((), wanted, sinks, kept)
            else:
                self._either(streams, lambda: self._rows((), wanted, sinks, kept))
        for tile, place in self.places.items():
            tile.place, tile.node = place, None

    def _guarded(self) -> AbstractContextManager[None]:
        """Return what to emit the loop inside of: nothing is computed for a store that does not fit."""
        guards = list(dict.fromkeys(sink.fits for sink in self.group.stores if sink.fits is not None))
        return self.b.when(reduce(lambda a, b: self.b.op("and", a, b), guards)) if guards else nullcontext()

    def _either(self, streams: Value, rows: Callable[[], None]) -> None:
        """Emit the loop over rows twice: writing past the caches where that pays, and plainly."""
        self.streaming = True
        with self.b.when(streams):
            rows()
        self.streaming = False
        with self.b.when(self.b.op("xor", streams, Value("i1", "true"))):
            rows()

    def _streams(self) -> Value | None:
        """Return whether the group's stores are large and aligned enough to bypass the caches, None for never."""
        if not self.can_stream or len(self.group.stores) != 1:
            return None
        (sink,) = self.group.stores
        tensor, width = sink.tensor, static(sink.tile.valid[-1])
        aligned = width is not None and width * 4 % LINE == 0
        if sink.add or tensor.dtype.name != "fp32" or not aligned or tensor.strides[-1] != i64(1):
            return None
        known = [static(extent) for extent in tensor.shape]
        if all(extent is not None for extent in known) and math.prod(e or 0 for e in known) * 4 < STREAMED:
            return None
        return self._pays(tensor, sink.offsets[-1])

    def _pays(self, tensor: Tensor, column: Value) -> Value:
        count = i64(4)
        for extent in tensor.shape:
            count = self.b.op("mul", count, extent)
        bits = self.b.value("i64", f"ptrtoint {tensor.pointer} to i64")
        for stride in (*tensor.strides[:-1], column):
            bits = self.b.op("or", bits, self.b.op("mul", stride, i64(4)))
        aligned = self.b.compare("icmp eq", self.b.op("and", bits, i64(LINE - 1)), i64(0))
        return self.b.op("and", aligned, self.b.compare("icmp sge", count, i64(STREAMED)))

    def _wanted(self) -> list[Tile]:
        """Return the recorded tiles that a store or a later reader needs, in order."""
        needed: set[Tile] = set()
        pending = [*(s.tile for s in self.group.stores), *self.places]
        while pending:
            tile = pending.pop()
            if tile.node is None or tile in needed:
                continue
            needed.add(tile)
            pending += operands_of(tile)
        return [t for t in self.group.tiles if t in needed]

    def _is_kept(self, tile: Tile, wanted: Sequence[Tile]) -> bool:
        """Return whether a row of a tile is stored for later passes rather than computed again."""
        if tile in self.places or tile.is_column or isinstance(tile.node, ReduceNode):
            return False
        readers = [t.node.level for t in wanted if tile in operands_of(t)]
        readers += [s.tile.node.level for s in self.group.stores if s.tile is tile and s.tile.node]
        later = any(level > tile.node.level for level in readers)
        return later and _is_dear(tile)

    def _rows(self, indices: tuple[Value, ...], wanted: list[Tile], sinks: list[Any], kept: dict[Tile, Place]) -> None:
        if len(indices) == len(self.group.rows):
            self._row(Row(indices), wanted, sinks, kept)
            self.after_row()
            return
        extent = self.group.rows[len(indices)]
        if static(extent) == 1:
            self._rows((*indices, i64(0)), wanted, sinks, kept)
            return
        with self.b.loop(i64(0), extent, i64(1)) as index:
            self._rows((*indices, index), wanted, sinks, kept)

    def _row(self, row: Row, wanted: list[Tile], sinks: list[Any], kept: dict[Tile, Place]) -> None:
        top = max([level_of(t) for t in wanted] or [0])
        self._begin(row, wanted, sinks)
        for level in range(top + 1):
            for tile in wanted:
                if tile.is_column and not isinstance(tile.node, ReduceNode) and tile.node.level == level:
                    row.scalars[tile] = self._compute(tile, Pass(row, i64(0)))
            reduces = [t for t in wanted if isinstance(t.node, ReduceNode) and t.node.level == level]
            now = [s for s in sinks if not s.tile.is_column and level_of(s.tile) == level]
            # a pass that waits for memory leaves the arithmetic idle, and the other way round: the first pass to find
            # its row in the cache fetches the next one
            self.prefetched = self._prefetched(wanted) if self.streaming and level == min(top, 1) else []
            self.in_next_row = top > 0
            self._columns(row, reduces, now)
            for sink in now:
                if isinstance(sink, SaveSink):
                    row.saved[sink.tile] = sink.place
            for sink in sinks:
                if sink.tile.is_column and level_of(sink.tile) == level + isinstance(sink.tile.node, ReduceNode):
                    self._drain(sink, Pass(row, i64(0)))

    def _begin(self, row: Row, wanted: Sequence[Tile], sinks: Sequence[Any]) -> None:
        """Emit where the row begins of every tensor that it reads or writes: once, for all of its passes."""
        for tile in wanted:
            if isinstance(tile.node, LoadNode) and not tile.is_column:
                row.starts[tile] = self._row_start(tile.node.tensor, tile.node.offsets, tile, row)
        for sink in sinks:
            if isinstance(sink, StoreSink) and not sink.tile.is_column:
                row.starts[sink] = self._row_start(sink.tensor, sink.offsets, sink.tile, row)

    def _columns(self, row: Row, reduces: list[Tile], sinks: list[Any]) -> None:
        """Emit the passes of one level, one for each width among its tiles."""
        widths = dict.fromkeys([*(t.node.operand.valid[-1] for t in reduces), *(s.tile.valid[-1] for s in sinks)])
        for width in widths:
            self._pass(
                row,
                width,
                [t for t in reduces if t.node.operand.valid[-1] == width],
                [s for s in sinks if s.tile.valid[-1] == width],
            )

    def _pass(self, row: Row, width: Value, reduces: list[Tile], sinks: list[Any]) -> None:
        known, spread = static(width), Spread(self.b.mark())
        short = known is not None and known <= self.lanes * CHAINS
        emit = self._short if short else self._long
        for tile, lanes in zip(reduces, emit(row, spread, width, reduces, sinks), strict=True):
            row.scalars[tile] = rounded(self._across(tile, lanes), tile.type.dtype)

    def _short(self, row: Row, spread: Spread, width: Value, reduces: list[Tile], sinks: list[Any]) -> list[Lanes]:
        """Emit a row of a few vectors, one after the other; return what is folded."""
        folded, known = [self._start(t, self.lanes) for t in reduces], static(width) or 0
        for column in range(0, known, self.lanes):
            mask = None if column + self.lanes <= known else self._mask(i64(column), width)
            folded = self._step(Pass(row, i64(column), self.lanes, mask, spread), reduces, sinks, folded)
        return folded

    def _long(self, row: Row, spread: Spread, width: Value, reduces: list[Tile], sinks: list[Any]) -> list[Lanes]:
        """Emit a row as a loop over blocks of vectors, and one over what is left; return what is folded."""
        known, turns = static(width), CHAINS if reduces else UNROLL
        block = self.lanes * turns
        accumulators = [self._start(t, self.lanes) for t in reduces] * turns
        done = i64(known // block * block) if known is not None else self._rounded_down(width, block)
        loop = self.b.open_loop(i64(0), done, i64(block), [a.value for a in accumulators])
        carried = [Lanes(self.b, v, a.element) for v, a in zip(loop.values, accumulators, strict=True)]
        following: list[Lanes] = []
        for turn in range(turns):
            column = self.b.op("add", loop.index, i64(turn * self.lanes)) if turn else loop.index
            part = carried[turn * len(reduces) : (turn + 1) * len(reduces)]
            following += self._step(Pass(row, column, self.lanes, None, spread), reduces, sinks, part)
        values = self.b.close_loop(loop, [f.value for f in following])
        accumulators = [Lanes(self.b, v, a.element) for v, a in zip(values, accumulators, strict=True)]
        folded = self._fold_turns(reduces, accumulators)
        if known is None or known > (static(done) or 0):
            folded = self._rest(row, spread, width, done, reduces, sinks, folded)
        return folded

    def _rounded_down(self, width: Value, block: int) -> Value:
        return self.b.op("and", width, i64(-block))

    def _rest(
        self, row: Row, spread: Spread, width: Value, done: Value, reduces: list[Tile], sinks: list[Any],
        accumulators: list[Lanes],
    ) -> list[Lanes]:  # fmt: skip
        """Emit the columns that do not fill a block, with lanes past the end switched off."""
        known = static(width)
        loop = self.b.open_loop(done, width, i64(self.lanes), [a.value for a in accumulators])
        mask = None if known is not None and known % self.lanes == 0 else self._mask(loop.index, width)
        carried = [Lanes(self.b, v, a.element) for v, a in zip(loop.values, accumulators, strict=True)]
        following = self._step(Pass(row, loop.index, self.lanes, mask, spread), reduces, sinks, carried)
        values = self.b.close_loop(loop, [f.value for f in following])
        return [Lanes(self.b, v, a.element) for v, a in zip(values, accumulators, strict=True)]

    def _mask(self, column: Value, width: Value) -> Value:
        left = self.b.splat(self.b.op("sub", width, column), self.lanes)
        numbers = Value(left.type, f"<{', '.join(f'i64 {i}' for i in range(self.lanes))}>")
        return self.b.compare("icmp slt", numbers, left)

    def _start(self, tile: Tile, count: int) -> Lanes:
        dtype = tile.type.dtype
        return Lanes(self.b, literal(dtype, tile.node.start, count), dtype)

    def _fold_turns(self, reduces: list[Tile], accumulators: list[Lanes]) -> list[Lanes]:
        count = len(reduces)
        folded = accumulators[:count]
        for turn in range(1, len(accumulators) // count if count else 1):
            part = accumulators[turn * count : (turn + 1) * count]
            folded = [t.node.combine(a, p) for t, a, p in zip(reduces, folded, part, strict=True)]
        return folded

    def _across(self, tile: Tile, lanes: Lanes) -> Lanes:
        """Return the lanes folded into one."""
        while lanes.count > 1:
            half = lanes.count // 2
            parts = [self._half(lanes, range(start, start + half)) for start in (0, half)]
            lanes = tile.node.combine(*parts)
        return lanes

    def _half(self, lanes: Lanes, which: range) -> Lanes:
        if len(which) == 1:
            type_ = compute_type(lanes.element)
            return Lanes(self.b, self.b.value(type_, f"extractelement {lanes.value}, i32 {which[0]}"), lanes.element)
        mask = ", ".join(f"i32 {i}" for i in which)
        type_ = vector(compute_type(lanes.element), len(which))
        text = f"shufflevector {lanes.value}, {lanes.value.type} poison, <{len(which)} x i32> <{mask}>"
        return Lanes(self.b, self.b.value(type_, text), lanes.element)

    def _step(self, here: Pass, reduces: list[Tile], sinks: list[Any], accumulators: Sequence[Lanes]) -> list[Lanes]:
        """Emit one block of columns: what is folded and what is stored."""
        result: list[Lanes] = []
        for tile, accumulator in zip(reduces, accumulators, strict=True):
            given = self.lane(tile.node.operand, here)
            if here.mask is not None:
                neutral = self._start(tile, here.count)
                given = Lanes(self.b, self.b.select(here.mask, given.value, neutral.value), given.element)
            result.append(tile.node.combine(accumulator, given))
        for tile in self.prefetched:
            self._prefetch(tile, here)
        for sink in sinks:
            self._drain(sink, here)
        return result

    def _prefetched(self, wanted: Sequence[Tile]) -> list[Tile]:
        """Return the loads whose elements come from far away: those that span all the rows."""
        loads = [t for t in wanted if isinstance(t.node, LoadNode) and not t.is_column]
        return [t for t in loads if t.valid[:-1] == self.group.rows and len(t.node.tensor.shape) > 1]

    def _prefetch(self, tile: Tile, here: Pass) -> None:
        """Emit a hint to fetch what is read next: further along this row, or the same of the next row."""
        tensor: Tensor = tile.node.tensor
        pointer = self.tensor_address(tile, here)
        rows = 1 if self.in_next_row else self._rows_ahead(tile)
        if rows:
            down = self._times(tensor.strides[-2], i64(rows))
            ahead = self.b.offset(pointer, down, memory_type(tensor.dtype))
        else:
            ahead = self.b.offset(pointer, i64(AHEAD), "i8")
        name = self.b.module.intrinsic("llvm.prefetch.p0", "void", "ptr", *["i32 immarg"] * 3)
        read, second_level, data = Value("i32", "0"), Value("i32", "2"), Value("i32", "1")
        self.b.invoke(name, ahead, read, second_level, data)

    def _rows_ahead(self, tile: Tile) -> int:
        """Return how many rows down lies what is fetched now; 0 for what is further along the same row.

        Whole rows follow each other in memory. Rows of a few columns do not, and the processor fetches none by itself.
        """
        height, width = static(tile.valid[-2]), static(tile.valid[-1])
        if height is None or width is None or tile.node.tensor.shape[-1] == tile.valid[-1]:
            return 0
        nbytes = width * tile.type.dtype.get_byte()
        return min(FAR // nbytes, height // 2) if nbytes >= AHEAD else 0

    def _drain(self, sink: Any, here: Pass) -> None:
        lane = self.lane(sink.tile, here)
        if isinstance(sink, SaveSink):
            pointer = self._address(sink.tile, sink.place, here)
            self._write(pointer, lane, here, i64(1))
            return
        tensor: Tensor = sink.tensor
        pointer = self.tensor_address(sink, here)
        stride = tensor.strides[-1]
        lane = Lanes(self.b, lane.value, tensor.dtype)
        may_meet = static(stride) in (None, 0)  # lanes of a view that overlaps itself
        if sink.add and (sink.atomic or may_meet):
            add_each(self.b, pointer, lane, stride, here.mask)
            return
        if sink.add:
            held = self._read(pointer, tensor.dtype, here, stride)
            lane = rounded(held + lane, tensor.dtype)
        if self.streaming and here.mask is None and here.count > 1:
            self.b.module.declare("!0 = !{i32 1}")
            self.b.module.streams = True
            self.b.store(to_memory(lane), pointer, here.count * 4, ", !nontemporal !0")
            return
        self._write(pointer, lane, here, stride)

    def lane(self, value: Tile | Scalar, here: Pass) -> Lanes:
        """Return the elements of a value at the columns being emitted."""
        if isinstance(value, Scalar):
            return self._spread_scalar(value, here)
        if value in here.known:
            return here.known[value]
        result = self._lane(value, here)
        here.known[value] = result
        return result

    def _spread_scalar(self, scalar: Scalar, here: Pass) -> Lanes:
        single = Lanes(self.b, scalar.value, scalar.dtype)
        if here.spread is None:
            return single
        return replace(self._everywhere(scalar, lambda: single, here, here.spread), shared=None)

    def _lane(self, tile: Tile, here: Pass) -> Lanes:
        if tile.is_column:
            return self._column(tile, here)
        place = tile.place or here.row.saved.get(tile)
        if place is not None:
            return self._read(self._address(tile, place, here), tile.type.dtype, here, i64(place.strides[-1]))
        return self._compute(tile, here)

    def _column(self, tile: Tile, here: Pass) -> Lanes:
        """Return the element that a row has of a tile of one column."""
        once = Pass(here.row, i64(0))
        scalar = here.row.scalars.get(tile)
        if here.spread is None:
            return scalar or self._compute(tile, once)
        return self._everywhere(tile, lambda: scalar or self._compute(tile, once), here, here.spread)

    def _everywhere(self, key: Tile | Scalar, single: Callable[[], Lanes], here: Pass, spread: Spread) -> Lanes:
        """Return one element in every lane, put there once for all columns."""
        if key not in spread.lanes:
            with self.b.earlier(spread.mark):
                number = single()
                vector_ = self.b.splat(number.value, here.count)
            shared = Shared(number, spread.mark)
            spread.lanes[key] = Lanes(self.b, vector_, number.element, shared=shared)
        return spread.lanes[key]

    def _compute(self, tile: Tile, here: Pass) -> Lanes:
        node = tile.node
        if node is None:
            assert tile.place is not None
            stride = i64(tile.place.strides[-1])
            return self._read(self._address(tile, tile.place, here), tile.type.dtype, here, stride)
        if isinstance(node, LoadNode):
            pointer = self.tensor_address(tile, here)
            return self._read(pointer, tile.type.dtype, here, node.tensor.strides[-1])
        if isinstance(node, ReduceNode):
            return here.row.scalars[tile]
        return rounded(node.function(*(self.lane(o, here) for o in node.operands)), tile.type.dtype)

    def _address(self, tile: Tile, place: Place, here: Pass) -> Value:
        """Return where a tile's elements at the current row and column lie; axes of one element stay where they are."""
        shape = tile.type.shape
        indices = (*here.row.indices[len(here.row.indices) - len(shape) + 1 :], here.column)
        offset: Value = i64(0)
        for index, extent, stride in zip(indices, shape, place.strides, strict=True):
            if extent != 1:
                offset = self._plus(offset, self._times(index, i64(stride)))
        return self._moved(place.pointer, offset, tile.type.dtype)

    def tensor_address(self, of: Tile | StoreSink, here: Pass) -> Value:
        """Return where what a tile is loaded from, or what a sink writes to, lies at the current row and column."""
        source, tile = (of.node, of) if isinstance(of, Tile) else (of, of.tile)
        tensor: Tensor = source.tensor
        start = here.row.starts.get(of) or self._row_start(tensor, source.offsets, tile, here.row)
        return self._moved(start, self._times(here.column, tensor.strides[-1]), tensor.dtype)

    def _row_start(self, tensor: Tensor, offsets: tuple[Value, ...], tile: Tile, row: Row) -> Value:
        """Return where a tile's elements at a row begin in its tensor; a tile of one row serves every row."""
        shape = tile.type.shape
        indices = (*row.indices, i64(0))[-len(shape) :]
        own = [i64(0) if extent == 1 else index for index, extent in zip(indices, shape, strict=True)]
        indices = [*[i64(0)] * len(tensor.shape), *own][len(own) :]
        offset: Value = i64(0)
        for index, start, stride in zip(indices, offsets, tensor.strides, strict=True):
            offset = self._plus(offset, self._times(self._plus(index, start), stride))
        return self._moved(tensor.pointer, offset, tensor.dtype)

    def _moved(self, pointer: Value, offset: Value, dtype: DataType) -> Value:
        return pointer if static(offset) == 0 else self.b.offset(pointer, offset, memory_type(dtype))

    def _plus(self, a: Value, b: Value) -> Value:
        if static(a) == 0:
            return b
        return a if static(b) == 0 else self.b.op("add", a, b)

    def _times(self, a: Value, b: Value) -> Value:
        if static(b) == 0:
            return b
        if static(b) == 1 or static(a) == 0:
            return a
        return self.b.op("mul", a, b)

    def _read(self, pointer: Value, dtype: DataType, here: Pass, stride: Value) -> Lanes:
        """Emit a load of neighbours, or of elements `stride` apart."""
        type_ = memory_type(dtype)
        whole = vector(type_, here.count)
        if static(stride) != 1 and here.count > 1:
            return from_memory(self.b, self._gathered(pointer, type_, whole, here, stride), dtype)
        return from_memory(self.b, load(self.b, whole, pointer, dtype.get_byte(), here.mask), dtype)

    def _spread(self, pointer: Value, type_: str, here: Pass, stride: Value) -> Value:
        """Return the addresses of elements `stride` apart."""
        numbers = Value(f"<{here.count} x i64>", f"<{', '.join(f'i64 {i}' for i in range(here.count))}>")
        offsets = self.b.op("mul", numbers, self.b.splat(stride, here.count))
        return self.b.value(f"<{here.count} x ptr>", f"getelementptr {type_}, {pointer}, {offsets}")

    def _all(self, here: Pass) -> Value:
        every = ", ".join(["i1 true"] * here.count)
        return here.mask or Value(f"<{here.count} x i1>", f"<{every}>")

    def _gathered(self, pointer: Value, type_: str, whole: str, here: Pass, stride: Value) -> Value:
        addresses, mask = self._spread(pointer, type_, here, stride), self._all(here)
        name = f"llvm.masked.gather.{mangled(whole)}.v{here.count}p0"
        self.b.module.intrinsic(name, whole, addresses.type, "i32", mask.type, whole)
        return self.b.value(whole, f"call {whole} @{name}({addresses}, i32 1, {mask}, {whole} zeroinitializer)")

    def _write(self, pointer: Value, lane: Lanes, here: Pass, stride: Value) -> None:
        """Emit a store of neighbours, or of elements `stride` apart."""
        stored = to_memory(lane)
        align = lane.element.get_byte()
        if static(stride) != 1 and here.count > 1:
            addresses, mask = self._spread(pointer, memory_type(lane.element), here, stride), self._all(here)
            name = f"llvm.masked.scatter.{mangled(stored.type)}.v{here.count}p0"
            self.b.module.declare(f"declare void @{name}({stored.type}, {addresses.type}, i32, {mask.type})")
            self.b.do(f"call void @{name}({stored}, {addresses}, i32 1, {mask})")
            return
        store(self.b, stored, pointer, align, here.mask)


def _is_dear(tile: Tile) -> bool:
    """Return whether computing a tile again costs more than storing a row of it."""
    node = tile.node
    if not isinstance(node, MapNode):
        return False
    return node.dear or any(o.place is None and _is_dear(o) for o in node.operands if isinstance(o, Tile))
