"""Row copies: whole rows brought from one place to another, wherever their elements lie."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import moved, times
from tilewright.backends.cpu.compute.copies import inside, misfit
from tilewright.backends.cpu.compute.indexed import at_column, raw_type, single
from tilewright.backends.cpu.compute.storage import fetch
from tilewright.backends.cpu.compute.streaming import LINE, emit_streaming, store_past_caches, streaming_pays
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.core.expr import Call
from tilewright.dtypes import DataType
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import FALSE, I8, I64, PTR, TRUE, Value, i64, vector
from tilewright.ops.row_gather import FIT

SHORT = 2048
"""Bytes up to which a row is copied in place of a call."""


class Row(NamedTuple):
    """Elements in a row: where the first lies, and how far neighbours are apart."""

    pointer: Value
    stride: Value


def copy_row(e: FunctionEmitter, dtype: DataType, come: Row, go: Row, count: Value, *, streaming: bool = False) -> None:
    """Emit a copy of so many elements; adjacent ones are copied as bytes, past the caches if asked."""
    unsure = [row.stride for row in (come, go) if static(row.stride) != 1]
    if not unsure:
        _bytes(e, dtype, come, go, count, streaming)
        return
    if any(static(stride) is not None for stride in unsure):
        _elements(e, dtype, come, go, count)
        return
    adjacent = TRUE
    for stride in unsure:
        adjacent = e.b.op("and", adjacent, e.b.compare("icmp eq", stride, i64(1)))
    with e.b.when(adjacent):
        _bytes(e, dtype, come, go, count, streaming)
    with e.b.when(e.negated(adjacent)):
        _elements(e, dtype, come, go, count)


def _bytes(e: FunctionEmitter, dtype: DataType, come: Row, go: Row, count: Value, streaming: bool) -> None:
    width, nbytes = e.program.target.vector_bits // 8, times(e, count, i64(dtype.get_byte()))
    turn = 4 * width
    size = static(nbytes)
    if not streaming and (size is None or size > SHORT or size % turn):
        _call(e, come.pointer, go.pointer, nbytes)
        return
    bulk = i64(size // turn * turn) if size is not None else e.b.op("and", nbytes, i64(-turn))
    _vectors(e, come.pointer, go.pointer, bulk, width, streaming)
    if size is None or size % turn:
        first, second = (e.b.offset(pointer, bulk, I8) for pointer in (come.pointer, go.pointer))
        _call(e, first, second, e.b.op("sub", nbytes, bulk))


def _call(e: FunctionEmitter, come: Value, go: Value, nbytes: Value) -> None:
    name = e.b.module.intrinsic("llvm.memcpy.p0.p0.i64", "void", PTR, PTR, I64, "i1")
    e.b.invoke(name, go, come, nbytes, FALSE)


def _vectors(e: FunctionEmitter, come: Value, go: Value, nbytes: Value, width: int, streaming: bool) -> None:
    """Emit a copy of vectors, four in a turn."""
    type_ = vector(I8, width)
    with e.b.loop(i64(0), nbytes, i64(4 * width)) as at:
        places = [e.b.op("add", at, i64(step * width)) for step in range(4)]
        taken = [e.b.load(type_, e.b.offset(come, place, I8), 1) for place in places]
        for value, place in zip(taken, places, strict=True):
            if streaming:
                store_past_caches(e.b, value, e.b.offset(go, place, I8), width)
            else:
                e.b.store(value, e.b.offset(go, place, I8), 1)


def _elements(e: FunctionEmitter, dtype: DataType, come: Row, go: Row, count: Value) -> None:
    type_, size = raw_type(dtype), dtype.get_byte()

    def one(column: Value) -> None:
        taken = e.b.load(type_, at_column(e, come.pointer, column, come.stride, dtype), size)
        e.b.store(taken, at_column(e, go.pointer, column, go.stride, dtype), size)

    single(e, count, 4, one)


def clear_row(e: FunctionEmitter, go: Value, nbytes: Value) -> None:
    """Emit the writing of zeros to adjacent bytes."""
    name = e.b.module.intrinsic("llvm.memset.p0.i64", "void", PTR, I8, I64, "i1")
    e.b.invoke(name, go, Value(I8, "0"), nbytes, FALSE)


def fetch_ahead(e: FunctionEmitter, pointer: Value, nbytes: int, *, write: bool = False) -> None:
    """Emit hints to fetch the beginning of a row, from which on the processor fetches by itself."""
    for line in range(0, min(nbytes, 8 * LINE), LINE):
        fetch(e.b, e.b.offset(pointer, i64(line), "i8"), is_written=write)


def copy_window(e: FunctionEmitter, call: Call, source: Tensor, target: Tensor, bound: Bound) -> None:
    """Emit a copy of a window of one matrix into another, turned if asked; one that does not fit is an error."""
    come, go = e.indices(bound["src_offset"]), e.indices(bound["dst_offset"])
    size = e.indices(bound["valid_shape"] or bound["shapes"])
    turned: Sequence[Value] = size[::-1] if bound["transpose"] else size
    if bound["valid_shape"] is not None:
        _check_size(e, call, size, e.indices(bound["shapes"]))
    for starts, extents, tensor in ((come, size, source), (go, turned, target)):
        fits = inside(e, starts, extents, tensor.shape)
        if fits is not None:
            exact = misfit(e, "{1} element(s) at {2} do not fit", starts, extents, tensor.shape)
            e.stop(e.negated(fits), f"a window does not fit\n{FIT}", call, exact)
    rows, columns = target.strides[::-1] if bound["transpose"] else target.strides
    begin, end = moved(e, source, come), moved(e, target, go)

    def copied(streaming: bool) -> None:
        with e.b.loop(i64(0), size[0], i64(1)) as row:
            ends = (begin, source.strides[0]), (end, rows)
            first, second = (at_column(e, p, row, s, source.dtype) for p, s in ends)
            come, go = Row(first, source.strides[1]), Row(second, columns)
            copy_row(e, source.dtype, come, go, size[1], streaming=streaming)

    emit_streaming(e, None if bound["transpose"] else streaming_pays(e, target, end, static(size[1])), copied)


def _check_size(e: FunctionEmitter, call: Call, size: Sequence[Value], most: Sequence[Value]) -> None:
    for want, extent in zip(size, most, strict=True):
        if static(want) is None:
            e.stop(e.b.compare("icmp ugt", want, extent), "a valid part does not fit its window", call)
