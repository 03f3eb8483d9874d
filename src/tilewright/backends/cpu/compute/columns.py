"""Columns: one pass over the columns of a row, in which whole chains of ops stay in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce

from tilewright.backends.cpu.compute.lines import Lines, turns_of_line
from tilewright.backends.cpu.compute.nodes import (
    BytesNode,
    CheckedNode,
    ColumnsNode,
    IndexNode,
    MapNode,
    MaskedNode,
    PickNode,
    ReduceNode,
    RowsNode,
    is_dear,
)
from tilewright.backends.cpu.compute.prefetch import Prefetch
from tilewright.backends.cpu.compute.reaches import literal_reach
from tilewright.backends.cpu.compute.row_memory import (
    Pass,
    Row,
    Spread,
    drain,
    read,
    read_admitted,
    tensor_address,
    tile_address,
    window,
)
from tilewright.backends.cpu.compute.traced import Lanes, Shared, from_memory, rounded, to_memory
from tilewright.backends.cpu.emit.groups import Sink, StoreSink, read_first
from tilewright.backends.cpu.emit.llvm_types import compute_type, literal, memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Scalar, Tile, static
from tilewright.dtypes import DataType
from tilewright.native.interleaving import MANY, interleave
from tilewright.native.llvm import I64, Builder, Value, i64, shuffled, vector
from tilewright.native.rarities import open_way, otherwise
from tilewright.records import mutable

UNROLL, CHAINS = 2, 4
"""How many vectors of a row are computed together, and how many where each waits for the one folded before it, or for
a long chain of its own instructions."""
LINES = 8
"""How many lines of memory come and go in a block that streams, which has fewer vectors for that.

On one core of a Zen 5 silu(x) * y takes 3.3 ms for 4096 x 4096 floats two vectors at a time and 3.7 four at a time,
rotary embeddings, which read four lines and write two, 3.8 one at a time and 4.0 two at a time.
"""


@mutable
class Fold:
    """A tile of one column that a pass folds the rows of another to."""

    tile: Tile
    node: ReduceNode

    @property
    def width(self) -> Value:
        """How many columns are folded."""
        return self.node.operand.valid[-1]


@mutable
class Columns:
    """The columns of one row being emitted: what is folded and what is done with the rest, for one width at a time."""

    b: Builder
    lanes: int
    row: Row
    width: Value
    folds: list[Fold]
    sinks: list[Sink]
    streaming: bool
    ahead: Prefetch
    """What is fetched for later."""
    spread: Spread = field(init=False)

    @property
    def step(self) -> int:
        """How many columns a vector holds."""
        return self.lanes

    def emit(self) -> None:
        """Emit the pass, leaving what is folded among the row's scalars."""
        known, self.spread = static(self.width), Spread(self.b.mark())
        short = known is not None and known <= self.lanes * CHAINS
        if not (short or self.folds):
            self._drain()
            return
        for fold, lanes in zip(self.folds, self._short() if short else self._long(), strict=True):
            self.row.scalars[fold.tile] = rounded(self._across(fold, lanes), fold.tile.type.dtype)

    def _drain(self) -> None:
        """Emit a pass that folds nothing: as it mostly goes, and as it goes where that would be wrong."""
        b, spread = self.b, self.spread
        doubts: list[Value] = []
        spread.doubts, way = doubts, open_way(b)
        self._long()
        if not doubts:
            return
        with b.earlier(spread.mark):
            is_doubtful = reduce(lambda x, y: b.op("or", x, y), doubts)
        with otherwise(b, way, is_doubtful):
            self.spread = Spread(spread.mark, is_exact=True)
            self._rest(i64(0), [])

    def _short(self) -> list[Lanes]:
        """Emit a row of a few vectors, one after the other; return what is folded."""
        folded, known = [self._start(f, self.lanes) for f in self.folds], static(self.width) or 0
        lines = self._lines()
        for column in range(0, known, self.lanes):
            mask = None if column + self.lanes <= known else self._mask(i64(column))
            folded = self._step(self._here(i64(column), mask), folded, lines)
        return folded

    def _long(self) -> list[Lanes]:
        """Emit a row as a loop over blocks of vectors, and one over what is left; return what is folded."""
        known, turns, lines = static(self.width), self._turns(), self._lines()
        block = self.step * turns
        accumulators = [self._start(f, self.lanes) for f in self.folds] * turns
        done = i64(known // block * block) if known is not None else self.b.op("and", self.width, i64(-block))
        loop = self.b.open_loop(i64(0), done, i64(block), [a.value for a in accumulators])
        carried = self._as(loop.values, accumulators)
        places = [self.b.op("add", loop.index, i64(turn * self.step)) if turn else loop.index for turn in range(turns)]
        given: list[Lanes] = []
        starts: list[int] = []
        for column in places:
            starts.append(len(self.b.lines))
            given += self._given(self._here(column), lines)
        interleave(self.b, starts)
        values = self.b.close_loop(loop, [f.value for f in self._folded(carried, given)])
        folded = self._fold_turns(self._as(values, accumulators))
        return self._rest(done, folded) if known is None or known > (static(done) or 0) else folded

    def _turns(self) -> int:
        """Return how many vectors of a row are computed together; those that are stored past the caches fill lines."""
        narrow = [turns_of_line(s.tensor.dtype.get_byte()) for s in self.sinks if isinstance(s, StoreSink)]
        is_dear_to_compute = self.b.module.registers >= MANY and any(is_dear(sink.tile) for sink in self.sinks)
        turns = CHAINS if self.folds or is_dear_to_compute else UNROLL
        if not self.streaming:
            return turns
        while turns > 1 and not self.folds and turns * (len(self.ahead.tiles) + len(narrow)) > LINES:
            turns //= 2
        return max(turns, *narrow, 1)

    def _lines(self) -> Lines | None:
        return Lines(self.b) if self.streaming else None

    def _rest(self, done: Value, accumulators: list[Lanes]) -> list[Lanes]:
        """Emit the columns that do not fill a block, with lanes past the end switched off."""
        loop = self.b.open_loop(done, self.width, i64(self.step), [a.value for a in accumulators])
        here = self._here(loop.index, self._mask_of_rest(loop.index))
        following = self._step(here, self._as(loop.values, accumulators))
        return self._as(self.b.close_loop(loop, [f.value for f in following]), accumulators)

    def _here(self, column: Value, mask: Value | None = None) -> Pass:
        return Pass(self.row, column, self.lanes, mask, self.spread)

    def _as(self, values: Sequence[Value], like: Sequence[Lanes]) -> list[Lanes]:
        return [Lanes(self.b, value, lane.element) for value, lane in zip(values, like, strict=True)]

    def _mask(self, column: Value) -> Value:
        left = self.b.splat(self.b.op("sub", self.width, column), self.lanes)
        numbers = Value(left.type, f"<{', '.join(f'i64 {i}' for i in range(self.lanes))}>")
        return self.b.compare("icmp slt", numbers, left)

    def _mask_of_rest(self, column: Value) -> Value | None:
        """Return which columns of the vector from one on there are; None: all of them, as of any other."""
        known = static(self.width)
        return None if self.step == 1 or (known is not None and known % self.step == 0) else self._mask(column)

    def _start(self, fold: Fold, count: int) -> Lanes:
        dtype = fold.tile.type.dtype
        return Lanes(self.b, literal(dtype, fold.node.start, count), dtype)

    def _fold_turns(self, accumulators: list[Lanes]) -> list[Lanes]:
        """Return the folds of all turns as one: pairs of turns, then pairs of those."""
        count = len(self.folds)
        while len(accumulators) > count:
            half = len(accumulators) // 2
            pairs = zip(self.folds * (half // count), accumulators[:half], accumulators[half:], strict=True)
            accumulators = [self._combined(fold, one, other) for fold, one, other in pairs]
        return accumulators

    def _folded(self, totals: list[Lanes], given: list[Lanes]) -> list[Lanes]:
        """Return the totals with what the turns give; where pairs fold better, that of every other turn stays."""
        count, result = len(self.folds), list(totals)
        for number, fold in enumerate(self.folds):
            self.b.place_at(fold.tile.span)
            places, pair = range(number, len(given), count), fold.node.pair
            if pair is None or not given[number].element.is_float():
                for at in places:
                    result[at] = fold.node.combine(totals[at], given[at])
                continue
            for one, other in zip(places[::2], places[1::2], strict=True):
                result[one] = pair(totals[one], given[one], given[other])
        return result

    def _combined(self, fold: Fold, lanes: Lanes, others: Lanes) -> Lanes:
        self.b.place_at(fold.tile.span)
        return fold.node.combine(lanes, others)

    def _across(self, fold: Fold, lanes: Lanes) -> Lanes:
        """Return the lanes folded into one."""
        self.b.place_at(fold.tile.span)
        pair = fold.node.pair if lanes.element.is_float() else None
        folded, combine = lanes, fold.node.combine if pair is None else pair.first_of_numbers
        while folded.count > 1:
            half = folded.count // 2
            folded = combine(*(self._half(folded, range(start, start + half)) for start in (0, half)))
        return folded if pair is None else pair.unless_nan(folded, lanes)

    def _half(self, lanes: Lanes, which: range) -> Lanes:
        if len(which) == 1:
            type_ = compute_type(lanes.element)
            return Lanes(self.b, self.b.value(type_, f"extractelement {lanes.value}, i32 {which[0]}"), lanes.element)
        mask = ", ".join(f"i32 {i}" for i in which)
        type_ = vector(compute_type(lanes.element), len(which))
        text = f"shufflevector {lanes.value}, {lanes.value.type} poison, <{len(which)} x i32> <{mask}>"
        return Lanes(self.b, self.b.value(type_, text), lanes.element)

    def _step(self, here: Pass, accumulators: Sequence[Lanes], lines: Lines | None = None) -> list[Lanes]:
        """Emit one vector of columns: what is folded and what is stored."""
        given = self._given(here, lines)
        return [self._combined(*each) for each in zip(self.folds, accumulators, given, strict=True)]

    def _given(self, here: Pass, lines: Lines | None = None) -> list[Lanes]:
        """Emit one vector of columns but for its folds; return what they are given."""
        result: list[Lanes] = []
        for fold in self.folds:
            given = lane_of(self.b, fold.node.operand, here)
            if here.mask is not None:
                neutral = self._start(fold, here.count)
                given = Lanes(self.b, self.b.select(here.mask, given.value, neutral.value), given.element)
            result.append(given)
        self.ahead.emit(here)
        for tile in read_first(self.sinks):
            lane_of(self.b, tile, here)
        for sink in self.sinks:
            drained(self.b, sink, here, lines)
        return result


def drained(b: Builder, sink: Sink, here: Pass, lines: Lines | None = None) -> None:
    """Emit what is done with the elements of a tile at the current columns, of those that a mask admits."""
    lane = lane_of(b, sink.tile, here)
    b.place_at(sink.span if sink.span.is_known else sink.tile.span)
    if not isinstance(sink, StoreSink) or sink.mask is None or sink.admit is None:
        drain(b, sink, lane, here, lines)
        return
    mask = sink.admit(lane_of(b, sink.mask, here), here)
    if here.count > 1:
        drain(b, sink, lane, replace(here, mask=mask), lines)
        return
    with b.when(mask):
        drain(b, sink, lane, here, lines)


def lane_of(b: Builder, value: Tile | Scalar, here: Pass) -> Lanes:
    """Return the elements of a value at the columns being emitted."""
    if isinstance(value, Scalar):
        single = Lanes(b, value.value, value.dtype, reach=literal_reach(value.value, value.dtype))
        if here.spread is not None:
            return replace(_everywhere(b, value, lambda: single, here), shared=None)
        return single if here.down is None else Lanes(b, b.splat(value.value, here.count), value.dtype)
    if value not in here.known:
        here.known[value] = (here.down or _lane)(b, value, here)
    return here.known[value]


def _lane(b: Builder, tile: Tile, here: Pass) -> Lanes:
    if tile.is_column and not here.is_run:
        return _column(b, tile, here)
    place = tile.place or here.row.saved.get(tile)
    if place is not None:
        return read(b, tile_address(b, tile, place, here), tile.type.dtype, here, i64(place.strides[-1]))
    return computed(b, tile, here)


def _column(b: Builder, tile: Tile, here: Pass) -> Lanes:
    """Return the element that a row has of a tile of one column."""

    def single() -> Lanes:
        return here.row.scalars.get(tile) or computed(b, tile, Pass(here.row, i64(0)))

    return single() if here.spread is None else _everywhere(b, tile, single, here)


def _everywhere(b: Builder, key: Tile | Scalar, single: Callable[[], Lanes], here: Pass) -> Lanes:
    """Return one element in every lane, put there once for all columns."""
    spread = here.spread
    assert spread is not None
    if key not in spread.lanes:
        with b.earlier(spread.mark):
            number = single()
            vector_ = b.splat(number.value, here.count)
        shared = None if spread.is_exact else Shared(number, spread.mark, spread.doubts)
        spread.lanes[key] = Lanes(b, vector_, number.element, shared=shared, reach=number.reach)
    return spread.lanes[key]


def _columns(b: Builder, tile: Tile, node: ColumnsNode, here: Pass) -> Lanes:
    """Return the columns being emitted of columns that repeat; what is the same for all of them is read once."""
    spread = here.spread
    assert spread is not None
    if 0 < node.period <= here.count:
        if tile not in spread.lanes:
            with b.earlier(spread.mark):
                spread.lanes[tile] = _shown(b, node, Pass(here.row, i64(0), here.count, None, spread))
        return spread.lanes[tile]
    return _shown(b, node, replace(here, column=node.first(b, here.column)))


def _shown(b: Builder, node: ColumnsNode, here: Pass) -> Lanes:
    order, spread = node.taken(here.count), here.spread
    assert spread is not None
    count = min(max(order) + 1, here.count)
    mask = None if node.period else here.mask  # a period is there as a whole
    if mask is not None:
        mask = shuffled(b, mask, mask, range(0, here.count, node.step))
    found = lane_of(b, node.operand, Pass(here.row, here.column, count, mask, Spread(spread.mark)))
    stored = to_memory(found)
    return from_memory(b, shuffled(b, stored, stored, order), found.element)


def _picked(b: Builder, node: PickNode, here: Pass) -> Lanes:
    """Return the element of a row that has a number; what is added to zeros is no negative zero."""
    elements, index = node.operands
    assert isinstance(elements, Tile)
    number = b.convert("sext", lane_of(b, index, here).value, I64)
    at = b.op("sub", number, i64(node.first)) if node.first else number
    there = b.compare("icmp ult", at, elements.valid[-1])
    found = lane_of(b, elements, Pass(here.row, b.select(there, at, i64(0))))
    zero = found.like(0)
    return Lanes(b, b.select(there, (zero + found).value, zero.value), found.element)


def _bytes(b: Builder, dtype: DataType, node: BytesNode, here: Pass) -> Lanes:
    """Return the columns being emitted of bytes that are more or fewer elements of another type."""
    (operand,), mask, spread = node.operands, here.mask, here.spread
    assert isinstance(operand, Tile) and spread is not None
    have, want = operand.type.dtype.get_byte(), dtype.get_byte()
    count = here.count * want // have
    column = b.op("udiv", b.op("mul", here.column, i64(want)), i64(have))
    if mask is not None:
        mask = shuffled(b, mask, mask, [lane * have // want for lane in range(count)])
    found = to_memory(lane_of(b, operand, Pass(here.row, column, count, mask, Spread(spread.mark))))
    return from_memory(b, b.convert("bitcast", found, vector(memory_type(dtype), here.count)), dtype)


def computed(b: Builder, tile: Tile, here: Pass) -> Lanes:
    """Return the elements of a tile as its node computes them, or as they lie in its place."""
    node = tile.node
    reads = isinstance(node, (MapNode, CheckedNode))
    operands = [lane_of(b, o, here) for o in node.operands] if reads else []
    b.place_at(tile.span)
    if isinstance(node, LoadNode):
        pointer = tensor_address(b, tile, here)
        if tile.is_column and static(tile.valid[-1]) != 1:  # where there is no column, there may be no memory either
            there = b.compare("icmp sgt", tile.valid[-1], i64(0))
            pointer = b.select(there, pointer, b.slot(memory_type(tile.type.dtype)))
        return read(b, pointer, tile.type.dtype, here, node.apart or node.tensor.strides[-1])
    if isinstance(node, RowsNode):
        start = here.row.starts.get(tile) or node.begin(here.row.indices[-1])
        pointer = b.offset(start, here.column, memory_type(node.dtype))
        return read(b, pointer, node.dtype, here, i64(1))
    if isinstance(node, ReduceNode):
        return here.row.scalars[tile]
    if isinstance(node, IndexNode):
        return node.numbers(b, here)
    if isinstance(node, PickNode):
        return _picked(b, node, here)
    if isinstance(node, MaskedNode):
        here.admitted[tile] = node.admit(lane_of(b, node.mask, here), here)
        admitted = replace(here, mask=here.admitted[tile])
        pointer, (tensor, _) = tensor_address(b, node.source, here), window(node.source)
        return read_admitted(b, pointer, tile.type.dtype, admitted, tensor.strides[-1], node.other)
    if isinstance(node, ColumnsNode):
        return _columns(b, tile, node, here)
    if isinstance(node, BytesNode):
        return _bytes(b, tile.type.dtype, node, here)
    if isinstance(node, CheckedNode):
        return node.function(here, *operands)
    if isinstance(node, MapNode):
        return rounded(node.function(*operands), tile.type.dtype)
    assert tile.place is not None
    stride = i64(tile.place.strides[-1])
    return read(b, tile_address(b, tile, tile.place, here), tile.type.dtype, here, stride)
