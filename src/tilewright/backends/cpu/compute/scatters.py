"""Scatters: elements and rows written where indices say, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import counted, moved, product, times, view_of
from tilewright.backends.cpu.compute.assemble import changing
from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.element_gathers import adjacent
from tilewright.backends.cpu.compute.indexed import at_column, check, number, raw_type, single
from tilewright.backends.cpu.compute.row_copies import Row, copy_row, fetch_ahead
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64
from tilewright.ops.scatter_update import ROWS


def put_row(
    e: FunctionEmitter, source: Tensor, come: Value, index: Tensor, at: Value, base: Value, step: Value, n: Value
) -> None:
    """Emit the writing of a row's elements, each so many steps from a base as its index says."""
    type_, size = raw_type(source.dtype), source.dtype.get_byte()

    def one(column: Value) -> None:
        found = number(e, at_column(e, at, column, index.strides[-1], index.dtype), index.dtype)
        taken = e.b.load(type_, at_column(e, come, column, source.strides[-1], source.dtype), size)
        e.b.store(taken, at_column(e, base, found, step, source.dtype), size)

    single(e, n, 4, one)


def covering(
    e: FunctionEmitter, call: Call, name: str, index: Tile, needed: Sequence[Value], what: str = "index"
) -> None:
    """Emit the end of the function where there is an element without a valid index, or something else beside it."""
    e.look(call, name, index, needed)
    for have, want in zip(index.valid, needed, strict=True):
        if have != want and not ((static(have) or 0) >= (static(want) or 1 << 62)):
            short = e.b.compare("icmp slt", have, want)
            e.stop(short, f"an element has no valid {what} in `{name}`", call)


@lowers("tile.scatter")
def _scatter(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, index = view_of(e, bound["src"]), adjacent(e, bound["indexes"])
    places = view_of(e, index)
    covering(e, call, "indexes", bound["indexes"], source.valid)
    result = changing(e, call, bound["dst"])
    made = view_of(e, result)
    check(e, call, places, source.valid, product(e, made.shape), "indexes")
    with rows_of(e, source.valid[:-1]) as rows:
        come, at = (moved(e, tensor, (*rows, i64(0))) for tensor in (source, places))
        put_row(e, source, come, places, at, made.pointer, i64(1), source.valid[-1])
    return result


@lowers("tile.mscatter")
def _mscatter(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source, index, target = view_of(e, bound["src"]), adjacent(e, bound["idx"]), bound["output_tensor"]
    places = view_of(e, index)
    covering(e, call, "idx", bound["idx"], source.valid)
    e.flush()  # the tensor may be read by what is recorded
    check(e, call, places, source.valid, product(e, target.shape), "idx")
    type_, size = raw_type(source.dtype), source.dtype.get_byte()
    with rows_of(e, source.valid[:-1]) as rows:
        come, at = (moved(e, tensor, (*rows, i64(0))) for tensor in (source, places))

        def one(column: Value) -> None:
            found = number(e, at_column(e, at, column, places.strides[-1], places.dtype), places.dtype)
            taken = e.b.load(type_, at_column(e, come, column, source.strides[-1], source.dtype), size)
            place = e.b.offset(target.pointer, counted(e, found, target, len(target.shape)), type_)
            e.b.store(taken, place, size)

        single(e, source.valid[-1], 4, one)
    return target


@lowers("tile.scatter_update")
def _scatter_update(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, index = view_of(e, bound["src"]), view_of(e, bound["index"])
    result = changing(e, call, bound["input"])
    put_rows(e, call, source, index, view_of(e, result))
    return result


def put_rows(e: FunctionEmitter, call: Call, source: Tensor, index: Tensor, target: Tensor) -> None:
    """Emit the writing of whole rows, each where an index says; the last axis is the row."""
    axes = 1 if len(target.shape) == 2 else 2
    check(e, call, index, index.valid, product(e, target.shape[:axes]), "index")
    _check_rows(e, call, source, index)
    columns, size = source.valid[-1], source.dtype.get_byte()
    nbytes = (static(columns) or 0) * size
    with rows_of(e, index.valid) as (i, j):
        k = e.b.op("add", times(e, i, index.shape[1]), j)
        found = number(e, moved(e, index, (i, j)), index.dtype)
        go = e.b.offset(target.pointer, counted(e, found, target, axes), raw_type(target.dtype))
        own = (k,) if axes == 1 else (i, j, i64(0))
        come = moved(e, source, (*own, i64(0)))
        fetch_ahead(e, go, nbytes, write=True)
        copy_row(e, source.dtype, Row(come, source.strides[-1]), Row(go, target.strides[-1]), columns)


def _check_rows(e: FunctionEmitter, call: Call, source: Tensor, index: Tensor) -> None:
    """Emit the end of the function where an index has no row to write."""
    if len(source.shape) == 4:
        pairs = list(zip(index.valid, source.valid[:2], strict=True))
    else:
        some = product(e, index.valid)
        last = e.b.op("sub", e.b.op("add", times(e, index.valid[0], index.shape[1]), index.valid[1]), index.shape[1])
        needed = e.b.select(e.b.compare("icmp sgt", some, i64(0)), last, i64(0))
        pairs = [(needed, source.valid[0])]
    for want, have in pairs:
        if want != have and e.checked:
            e.stop(e.b.compare("icmp sgt", want, have), f"src has no valid row for an index\n{ROWS}", call)
