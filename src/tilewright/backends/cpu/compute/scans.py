"""Scans: rows a vector at a time, folded within it and with what came before; other axes row by row.

What is carried from vector to vector is a double where it is a sum or product of floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import is_read_in_place, moved, read_of
from tilewright.backends.cpu.compute.copies import known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.lines import kept
from tilewright.backends.cpu.compute.reduce import VECTORS
from tilewright.backends.cpu.compute.storage import first_lanes, load, store
from tilewright.backends.cpu.compute.store_targets import gathered
from tilewright.backends.cpu.compute.streaming import emit_streaming, store_past_caches, streaming_pays
from tilewright.backends.cpu.compute.traced import Lanes, combine, converted, from_memory, rounded, to_memory
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import compute_type, literal, memory_type, repeated
from tilewright.backends.cpu.emit.values import Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.core.op import OpSpec
from tilewright.dtypes import FP64
from tilewright.native.llvm import F32, Value, element, i64, lanes, vector

DOUBLE, INFINITY = "double", "0x7FF0000000000000"
DOUBLES = {"add": "fadd", "multiply": "fmul"}
"""How floats are folded that carry more digits than they are stored with."""


@lowers("tile:scan")
def _scan(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    rank = len(source.valid)
    axis = bound["axis"] % rank
    if not is_read_in_place(e, source):
        e.stored(source)
        source = with_adjacent_rows(e, source) if not source.is_column else source
    given = read_of(e, source)
    e.flush()  # what is recorded may read where the result goes
    with gathered(e, tile_type(call), known_or(tile_type(call), source.valid)) as (result, made):
        scan = Scan(e, call.op.spec, given, made, bound["reverse"])
        if axis == rank - 1:
            _rows(e, scan, source.rows, made)
        else:
            with rows_of(e, [*source.valid[:axis], *source.valid[axis + 1 : -1]]) as batch:
                scan.columns(batch, axis)
    return result


def _rows(e: FunctionEmitter, scan: Scan, rows: Sequence[Value], made: Tensor) -> None:
    """Emit the scan of each row, of which the results pass the caches where that pays."""
    target = e.step.target
    tensor = e.value(target.tensor) if target is not None else None
    pays = streaming_pays(e, tensor, made.pointer, static(scan.valid[-1])) if isinstance(tensor, Tensor) else None

    def emit(is_streaming: bool) -> None:
        scan.is_streaming = is_streaming
        with rows_of(e, rows) as row:
            scan.row(row)

    emit_streaming(e, pays, emit)


class Scan:
    """One scan being emitted: what it goes over, and where its results go."""

    def __init__(self, e: FunctionEmitter, spec: OpSpec, source: Tensor, result: Tensor, is_reverse: bool) -> None:
        assert spec.start is not None
        self.e, self.b, self.dtype, self.valid = e, e.b, result.dtype, source.valid
        self.source, self.result, self.is_reverse = source, result, is_reverse
        self.is_streaming = False
        self.combine = combine(spec.combine)
        self.wide = DOUBLES.get(spec.combine, "") if self.dtype.is_float() and self.dtype != FP64 else ""
        self.start = spec.start(self.dtype)

    # rows

    def row(self, row: tuple[Value, ...]) -> None:
        """Emit the scan of one row: whole vectors, and the lanes left over after them, or before."""
        b, width, count = self.b, self.valid[-1], self.e.lanes
        whole = b.op("and", width, i64(-count))
        left = b.op("sub", width, whole)
        mask = first_lanes(b, left, count)
        carry = self._first(1)
        if self.is_reverse:
            carry = b.either(
                b.compare("icmp sgt", left, i64(0)), lambda: self._vector(row, whole, carry, mask), lambda: carry
            )
        loop = b.open_loop(i64(0), whole, i64(count), [carry])
        at = b.op("sub", b.op("sub", whole, i64(count)), loop.index) if self.is_reverse else loop.index
        (carry,) = b.close_loop(loop, [self._vector(row, at, loop.values[0], None)])
        if not self.is_reverse:
            with b.when(b.compare("icmp sgt", left, i64(0))):
                self._vector(row, whole, carry, mask)

    def _vector(self, row: tuple[Value, ...], at: Value, carry: Value, mask: Value | None) -> Value:
        """Emit the scan of one vector; return what goes on."""
        b, place = self.b, (*row, at)
        found = self._loaded(place, mask)
        if mask is not None:
            found = Lanes(b, b.select(mask, found.value, found.like(self.start).value), found.element)
        folded = self._within(found)
        last = 0 if self.is_reverse else folded.count - 1
        single = b.value(compute_type(self.dtype), f"extractelement {folded.value}, i32 {last}")
        self._put(self._spread(carry, folded), place, mask)
        return self._joined(carry, Lanes(b, single, self.dtype))

    def _spread(self, carry: Value, folded: Lanes) -> Value:
        """Return what one number carries, and every lane of a vector folded into it."""
        b, count = self.b, folded.count
        if self.wide != DOUBLES["add"]:
            return self._joined(b.splat(carry, count), folded)
        high = b.convert("fptrunc", carry, F32)
        rest = b.convert("fptrunc", b.op("fsub", carry, b.convert("fpext", high, DOUBLE)), F32)
        size = b.intrinsic("llvm.fabs", rest)
        is_number = b.compare("fcmp olt", size, repeated(F32, INFINITY, 1))
        counts = b.op("and", is_number, b.compare("fcmp one", rest, repeated(F32, "0.0", 1)))
        low = b.select(counts, rest, repeated(F32, "-0.0", 1))
        return b.op("fadd", b.op("fadd", folded.value, b.splat(low, count)), b.splat(high, count))

    def _within(self, found: Lanes) -> Lanes:
        """Return lanes folded with all before them in their vector, twice as far apart with every step."""
        b, count, step = self.b, found.count, 1
        nothing = found.like(self.start).value
        while step < count:
            shift = -step if self.is_reverse else step
            taken = [count + lane - shift if 0 <= lane - shift < count else lane for lane in range(count)]
            mask = f"<{count} x i32> <{', '.join(f'i32 {lane}' for lane in taken)}>"
            moved = b.value(nothing.type, f"shufflevector {nothing}, {found.value}, {mask}")
            found = self.combine(Lanes(b, moved, found.element), found)
            step *= 2
        return found

    # other axes

    def columns(self, batch: tuple[Value, ...], axis: int) -> None:
        """Emit the scan along another axis than the last, some vectors of columns at a time."""
        b, width, done = self.b, self.valid[-1], i64(0)
        for vectors in (VECTORS, 1):
            block = self.e.lanes * vectors
            end = b.op("add", done, b.op("and", b.op("sub", width, done), i64(-block)))
            with b.loop(done, end, i64(block)) as column:
                self._block(batch, axis, column, vectors, None)
            done = end
        left = b.op("sub", width, done)
        with b.when(b.compare("icmp sgt", left, i64(0))):
            self._block(batch, axis, done, 1, first_lanes(b, left, self.e.lanes))

    def _block(self, batch: tuple[Value, ...], axis: int, column: Value, vectors: int, mask: Value | None) -> None:
        b, count, rows = self.b, self.e.lanes, self.valid[axis]
        columns = [b.op("add", column, i64(number * count)) if number else column for number in range(vectors)]
        loop = b.open_loop(i64(0), rows, i64(1), [self._first(count)] * vectors)
        row = b.op("sub", b.op("sub", rows, i64(1)), loop.index) if self.is_reverse else loop.index
        following: list[Value] = []
        for at, carry in zip(columns, loop.values, strict=True):
            place = (*batch[:axis], row, *batch[axis:], at)
            following.append(self._joined(carry, self._loaded(place, mask)))
            self._put(following[-1], place, mask)
        b.close_loop(loop, following)

    # what goes on

    def _loaded(self, place: tuple[Value, ...], mask: Value | None) -> Lanes:
        """Emit the loading of one vector; elements of a mask count."""
        b, dtype = self.b, self.source.dtype
        type_, pointer = vector(memory_type(dtype), self.e.lanes), moved(self.e, self.source, place)
        return converted(from_memory(b, load(b, type_, pointer, dtype.get_byte(), mask), dtype), self.dtype)

    def _first(self, count: int) -> Value:
        """Return what nothing has been folded into."""
        if self.wide:
            return repeated(DOUBLE, str(float(self.start)), count)
        return literal(self.dtype, self.start, count)

    def _joined(self, carry: Value, found: Lanes) -> Value:
        """Return what is carried, and lanes folded into it."""
        if not self.wide:
            return self.combine(Lanes(self.b, carry, self.dtype), found).value
        return self.b.op(self.wide, carry, self.b.convert("fpext", found.value, carry.type))

    def _put(self, carried: Value, place: tuple[Value, ...], mask: Value | None) -> None:
        b = self.b
        value = carried
        if self.wide and element(carried.type) == DOUBLE:
            value = b.convert("fptrunc", carried, vector(F32, lanes(carried.type)))
        pointer, size = moved(self.e, self.result, place), self.dtype.get_byte()
        value = to_memory(rounded(Lanes(b, value, self.dtype), self.dtype))
        if self.is_streaming and mask is None:
            store_past_caches(b, kept(b, value), pointer, size * self.e.lanes)
        else:
            store(b, value, pointer, size, mask)
