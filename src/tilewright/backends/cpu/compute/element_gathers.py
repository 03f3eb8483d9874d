"""Elements gathered: single ones taken from tiles and tensors, each where an index says."""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import (
    counted,
    is_packed,
    is_read_in_place,
    moved,
    product,
    read_of,
    view_of,
)
from tilewright.backends.cpu.compute.copies import packed, rows_of, tile_type
from tilewright.backends.cpu.compute.indexed import (
    at_column,
    check,
    counting,
    gathered,
    number,
    numbers,
    one_by_one,
    raw_type,
    scaled,
    single,
    strips,
)
from tilewright.backends.cpu.compute.storage import store
from tilewright.backends.cpu.compute.streaming import store_past_caches
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Tensor, Tile, contiguous, static
from tilewright.core.expr import Call
from tilewright.dtypes import DataType
from tilewright.native.llvm import FALSE, I64, TRUE, Value, i64, vector
from tilewright.ops.indices import outside
from tilewright.records import mutable


@mutable
class Taking:
    """Elements of one row being gathered: from `base` on, an index counting `step` elements and a column `along`."""

    e: FunctionEmitter
    dtype: DataType
    base: Value
    index: Value
    index_dtype: DataType
    step: Value
    along: Value
    target: Value
    unsigned: bool = False
    apart: Value = i64(1)
    """The stride of the indices."""
    streaming: bool = False
    """Whether rows go past the caches."""

    def row(self, count: Value) -> None:
        """Emit the gathering of so many elements, vectors of them where they are as wide as the machine gathers."""
        size = self.dtype.get_byte()
        if size >= 4 and static(self.apart) == 1:
            strips(self.e, count, self.e.program.target.vector_bits // (8 * size), self._strip)
        else:
            single(self.e, count, 4, self._element)

    def _strip(self, column: Value, width: int, mask: Value | None) -> None:
        e, type_ = self.e, raw_type(self.dtype)
        at = e.b.offset(self.index, column, raw_type(self.index_dtype))
        if mask is None and not e.program.target.gathers_quickly:
            places = [e.b.op("add", column, i64(lane)) if lane else column for lane in range(width)]
            taken = one_by_one(e, lambda lane: self._place(places[lane]), type_, width)
            target, size = e.b.offset(self.target, column, type_), self.dtype.get_byte()
            if self.streaming:
                store_past_caches(e.b, taken, target, width * size)
            else:
                e.b.store(taken, target, size)
            return
        is_plain = static(self.step) == 1 and static(self.along) == 0 and not self.unsigned
        found = numbers(e, at, self.index_dtype, width, mask, 32)
        if not is_plain:  # a product may be more than 32 bits hold
            wide = e.b.convert("zext" if self.unsigned else "sext", found, vector(I64, width))
            found = scaled(e, wide, self.step)
            if static(self.along) != 0:
                found = e.b.op("add", found, scaled(e, counting(e, column, width), self.along))
        taken = gathered(e, self.base, found, type_, mask)
        target, size = e.b.offset(self.target, column, type_), self.dtype.get_byte()
        if self.streaming and mask is None:
            store_past_caches(e.b, taken, target, width * size)
        else:
            store(e.b, taken, target, size, mask)

    def _element(self, column: Value) -> None:
        e, type_ = self.e, raw_type(self.dtype)
        taken = e.b.load(type_, self._place(column), self.dtype.get_byte())
        e.b.store(taken, e.b.offset(self.target, column, type_), self.dtype.get_byte())

    def _place(self, column: Value) -> Value:
        """Return where the element of a column lies."""
        e = self.e
        at = at_column(e, self.index, column, self.apart, self.index_dtype)
        start = at_column(e, self.base, column, self.along, self.dtype) if static(self.along) != 0 else self.base
        found = number(e, at, self.index_dtype, unsigned=self.unsigned)
        return at_column(e, start, found, self.step, self.dtype)


def adjacent(e: FunctionEmitter, index: Tile) -> Tile:
    """Return indices whose neighbours along a row are adjacent: a turned view is copied."""
    return index if e.stored(index).strides[-1] == 1 or index.type.shape[-1] == 1 else packed(e, index)


@lowers("tile.gather")
def _gather(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, indices, type_ = bound["src"], adjacent(e, bound["indices"]), tile_type(call)
    if is_read_in_place(e, source):
        e.flush()  # the tensor may be written by what is recorded
        return _gathered_in_place(e, call, source, indices)
    source = packed(e, source)
    memory, places = view_of(e, source), view_of(e, indices)
    check(e, call, places, places.valid, product(e, memory.shape), "indices")
    _check_valid(e, call, source, places)
    result = e.fresh(type_, indices.valid)
    made = view_of(e, result)
    with rows_of(e, places.valid[:-1]) as rows:
        at, to = (moved(e, view, (*rows, i64(0))) for view in (places, made))
        Taking(e, type_.dtype, memory.pointer, at, places.dtype, i64(1), i64(0), to).row(places.valid[-1])
    return result


def _gathered_in_place(e: FunctionEmitter, call: Call, source: Tile, indices: Tile) -> Tile:
    """Emit the gathering of elements of a tile that is read where it lies in its tensor."""
    memory, places = read_of(e, source), view_of(e, indices)
    check(e, call, places, places.valid, product(e, memory.shape), "indices")
    _check_valid(e, call, source, places)
    result = e.fresh(tile_type(call), indices.valid)
    Elements(e, memory, "undefined").fetch(places, view_of(e, result), tuple(places.valid))
    return result


def _check_valid(e: FunctionEmitter, call: Call, source: Tile, places: Tensor) -> None:
    """Emit the end of the function where an index points at what is not valid of a partly valid tile."""
    unsure = [axis for axis, v in enumerate(source.valid) if static(v) != source.type.shape[axis]]
    if not e.checked or not unsure:
        return
    strides = contiguous(source.type.shape)
    with rows_of(e, places.valid[:-1]) as rows:
        row = moved(e, places, (*rows, i64(0)))
        with e.b.loop(i64(0), places.valid[-1], i64(1)) as column:
            found = number(e, at_column(e, row, column, places.strides[-1], places.dtype), places.dtype)
            bad = FALSE
            for axis in unsure:
                place = e.b.op("urem", e.b.op("udiv", found, i64(strides[axis])), i64(source.type.shape[axis]))
                bad = e.b.op("or", bad, e.b.compare("icmp uge", place, source.valid[axis]))
            exact = Exact("index {0} in `indices` points at what is not valid", lambda found=found: (found,))
            e.stop(bad, outside("indices"), call, exact)


class Elements:
    """Elements of a tensor being fetched by their numbers, whatever its strides and what a number too large means."""

    def __init__(self, e: FunctionEmitter, tensor: Tensor, mode: str) -> None:
        self.e, self.tensor, self.mode = e, tensor, mode
        self.count = product(e, tensor.shape)

    def fetch(self, places: Tensor, made: Tensor, extents: tuple[Value, ...]) -> None:
        """Emit the fetching of elements within some extents."""
        tensor, e = self.tensor, self.e
        direct = TRUE if len(tensor.shape) == 1 else is_packed(e, tensor)
        if self.mode != "undefined":
            direct = FALSE
        if direct != FALSE:
            with e.b.when(direct):
                self._rows(places, made, extents, self._direct)
        if direct != TRUE:
            with e.b.when(e.negated(direct)):
                self._rows(places, made, extents, self._one_by_one)

    def _rows(self, places: Tensor, made: Tensor, extents: tuple[Value, ...], emit: object) -> None:
        assert callable(emit)
        with rows_of(self.e, extents[:-1]) as rows:
            at, to = (moved(self.e, view, (*rows, i64(0))) for view in (places, made))
            emit(at, places, to, extents[-1])

    def _direct(self, at: Value, places: Tensor, to: Value, count: Value) -> None:
        step, tensor = self.tensor.strides[-1], self.tensor
        taking = Taking(self.e, tensor.dtype, tensor.pointer, at, places.dtype, step, i64(0), to, unsigned=True)
        taking.row(count)

    def _one_by_one(self, at: Value, places: Tensor, to: Value, count: Value) -> None:
        e, tensor, type_ = self.e, self.tensor, raw_type(self.tensor.dtype)

        def element(column: Value) -> None:
            found = number(e, e.b.offset(at, column, raw_type(places.dtype)), places.dtype, unsigned=True)
            index, there = bounded(e, found, self.count, self.mode)
            target = e.b.offset(to, column, type_)
            size = tensor.dtype.get_byte()
            if there is not None:
                e.b.store(Value(type_, "0"), target, size)
            with e.b.when(there or TRUE):
                place = e.b.offset(tensor.pointer, counted(e, index, tensor, len(tensor.shape)), type_)
                e.b.store(e.b.load(type_, place, size), target, size)

        with e.b.loop(i64(0), count, i64(1)) as column:
            element(column)


def bounded(e: FunctionEmitter, index: Value, count: Value, mode: str) -> tuple[Value, Value | None]:
    """Return the index that a number stands for and, in mode `zero`, whether it stands for one."""
    if mode == "clamp":
        return e.b.intrinsic("llvm.umin", index, e.b.op("sub", count, i64(1))), None
    if mode == "wrap":
        return e.b.op("urem", index, count), None
    return index, e.b.compare("icmp ult", index, count) if mode == "zero" else None
