"""Order: the elements along an axis sorted by their bits, alone or each beside its place."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from tilewright.backends.cpu.compute.copies import element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.keys import record, unsigned_key
from tilewright.backends.cpu.compute.largest import MOST, emit_largest, room_for
from tilewright.backends.cpu.compute.radix import emit_radix, room_for_counts
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Place, Tile, static
from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType
from tilewright.dtypes import INT32
from tilewright.native.llvm import I32, I64, PTR, Builder, Value, i64
from tilewright.ops.order import FEWER


@lowers("tile.sort")
def _sort(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, result, axis = _operands(e, call, bound)
    sort = Sort(e, source, axis, bound["descending"], has_places=False)
    with sort.rows() as at:
        taken = sort.sorted(at)
        to = element_at(e, source.type.dtype, _place(result), at)
        _each(e.b, sort.count, lambda i: sort.put(sort.got(taken, i), to, i, _place(result).strides[axis]))
    return result


@lowers("tile.argsort")
def _argsort(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, result, axis = _operands(e, call, bound)
    sort = Sort(e, source, axis, bound["descending"], has_places=True)
    with sort.rows() as at:
        taken = sort.sorted(at)
        to, stride = element_at(e, INT32, _place(result), at), _place(result).strides[axis]

        def put(i: Value) -> None:
            index = e.b.convert("trunc", sort.got(taken, i), I32)
            e.b.store(index, e.b.offset(to, e.b.op("mul", i, i64(stride)), I32), 4)

        _each(e.b, sort.count, put)
    return result


@lowers("tile.row_topk")
def _row_topk(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[Tile, ...]:
    source: Tile = bound["x"]
    e.stored(source)
    source = with_adjacent_rows(e, source)
    k, dtype, width = int(bound["k"]), source.type.dtype, source.valid[-1]
    if static(width) is None:
        e.stop(e.b.compare("icmp slt", width, i64(k)), FEWER, call)
    assert isinstance(call.type, TupleType)
    types = [each for each in call.type.elements if isinstance(each, TileType)]
    results = tuple(e.fresh(type_, known_or(type_, (*source.rows, i64(k)))) for type_ in types)
    is_few = k <= MOST and dtype.bits <= 32
    sort = Sort(e, source, len(source.valid) - 1, bound["largest"], has_places=True, taken=k if is_few else 0)
    with sort.rows() as at:
        found = sort.largest(at, k) if is_few else sort.sorted(at)
        from_ = element_at(e, dtype, _place(source), at)
        to, places = (element_at(e, t.type.dtype, _place(t), at) for t in results)

        def put(i: Value) -> None:
            index = e.b.convert("trunc", sort.got(found, i), I32)
            index = e.b.op("xor", index, Value(I32, "-1")) if is_few else index
            e.b.store(index, e.b.offset(places, i, I32), 4)
            there = e.b.offset(from_, e.b.convert("zext", index, I64), sort.raw)
            sort.put(e.b.load(sort.raw, there, sort.size), to, i, 1)

        _each(e.b, e.b.intrinsic("llvm.smin", width, i64(k)), put)
    return results


def _operands(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[Tile, Tile, int]:
    source: Tile = bound["x"]
    e.stored(source)
    result = e.fresh(tile_type(call), known_or(tile_type(call), source.valid))
    return source, result, bound["axis"] % len(source.valid)


def _place(tile: Tile) -> Place:
    assert tile.place is not None
    return tile.place


def _each(b: Builder, count: Value, make: Callable[[Value], None]) -> None:
    with b.loop(i64(0), count, i64(1)) as at:
        make(at)


class Sort:
    """One op that orders the elements along an axis, being emitted: its rooms in the arena, and how it sorts there."""

    def __init__(
        self, e: FunctionEmitter, source: Tile, axis: int, is_descending: bool, *, has_places: bool, taken: int = 0
    ) -> None:
        self.e, self.b, self.source, self.axis, self.is_descending = e, e.b, source, axis, is_descending
        self.dtype, self.count = source.type.dtype, source.valid[axis]
        self.size, self.raw = self.dtype.get_byte(), f"i{8 * self.dtype.get_byte()}"
        self.bits = (128 if self.dtype.bits == 64 else 64) if has_places else 8 * self.size
        self.has_places = has_places
        extent = source.type.shape[axis]
        sizes = [room_for(taken)] if taken else [extent * self.bits // 8] * 2 + [room_for_counts(8 * self.size)]
        self.rooms = _rooms(e, sizes)

    @contextmanager
    def rows(self) -> Generator[tuple[Value, ...], None, None]:
        """Emit loops over all other axes; give where along them the first element is."""
        others = [*self.source.valid[: self.axis], *self.source.valid[self.axis + 1 :]]
        with rows_of(self.e, others) as batch:
            yield (*batch[: self.axis], i64(0), *batch[self.axis :])

    def sorted(self, at: Sequence[Value]) -> Value:
        """Emit the sorting of what begins at a place; return where it is."""
        place = _place(self.source)
        start, stride = element_at(self.e, self.dtype, place, at), place.strides[self.axis]
        first, other, counts = self.rooms

        def take(i: Value) -> None:
            raw = self.b.load(self.raw, self.b.offset(start, self.b.op("mul", i, i64(stride)), self.raw), self.size)
            self.b.store(self._record(raw, i), self.b.offset(first, i, f"i{self.bits}"), self.bits // 8)

        _each(self.b, self.count, take)
        return self.b.call(PTR, self._radix(), first, other, counts, self.count)

    def largest(self, at: Sequence[Value], k: int) -> Value:
        """Emit the search for the first few in order; return where they are."""
        start = element_at(self.e, self.dtype, _place(self.source), at)
        name = emit_largest(self.b.module, self.dtype, k, self.is_descending, self.e.lanes)
        self.b.invoke(name, start, self.count, self.rooms[0])
        return self.rooms[0]

    def got(self, room: Value, at: Value) -> Value:
        """Emit the loading of what has been sorted."""
        return self.b.load(f"i{self.bits}", self.b.offset(room, at, f"i{self.bits}"), self.bits // 8)

    def put(self, value: Value, to: Value, at: Value, stride: int) -> None:
        """Emit the storing of an element."""
        self.b.store(value, self.b.offset(to, self.b.op("mul", at, i64(stride)), self.raw), self.size)

    def _record(self, raw: Value, at: Value) -> Value:
        if not self.has_places:
            return raw
        return record(self.b, unsigned_key(self.b, raw, self.dtype, self.is_descending), at, self.bits)

    def _radix(self) -> str:
        """Return the function that sorts what is in the rooms."""
        key_bits, dtype, is_descending = 8 * self.size, self.dtype, self.is_descending
        if self.has_places:
            return emit_radix(self.b.module, f"sort_records{key_bits}", self.bits, key_bits, _high(key_bits))
        name = f"sort_{dtype}_{'down' if is_descending else 'up'}"
        return emit_radix(
            self.b.module, name, key_bits, key_bits, lambda b, raw: unsigned_key(b, raw, dtype, is_descending)
        )


def _high(key_bits: int) -> Callable[[Builder, Value], Value]:
    """Return the key of a record: what is above its place."""

    def key(b: Builder, value: Value) -> Value:
        return b.convert("trunc", b.op("lshr", value, Value(value.type, "32")), f"i{key_bits}")

    return key


def _rooms(e: FunctionEmitter, sizes: Sequence[int]) -> list[Value]:
    """Return rooms in the arena that are free again after the op."""
    parts = [e.arena.take(size) for size in sizes]
    for part in parts:
        e.arena.give_back(part)
    return [e.address(part[0]) for part in parts]
