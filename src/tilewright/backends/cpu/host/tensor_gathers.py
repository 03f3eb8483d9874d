"""Gathers from tensors into new ones."""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import moved, times
from tilewright.backends.cpu.compute.copies import inside, rows_of
from tilewright.backends.cpu.compute.element_gathers import Taking
from tilewright.backends.cpu.compute.indexed import Largest, at_column, check, number, pointing_outside
from tilewright.backends.cpu.compute.row_copies import Row, copy_row, copy_window, fetch_ahead
from tilewright.backends.cpu.compute.selections import find_matches, take_columns
from tilewright.backends.cpu.compute.store_targets import fill_rows
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.backends.cpu.host.tensors import buffer, made_for
from tilewright.core.expr import Call
from tilewright.core.types import TensorType, TupleType
from tilewright.native.llvm import Value, i64
from tilewright.ops.gather import SMALLER
from tilewright.ops.indices import chosen, outside, pattern_of
from tilewright.ops.selection import COMPARISONS, CUT

AHEAD = 2
"""How many rows further on the one lies that is fetched while another is copied."""


@lowers("tensor.create_l1")
def _create_l1(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    return buffer(e, call, e.indices(bound["shape"]), bound["dtype"], clear=True)


@lowers("tensor.gather")
def _gather(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor | tuple[Tensor, ...]:
    e.flush()
    source: Tensor = bound["input"]
    if isinstance(call.type, TupleType):
        return _compared(e, call, source, bound)
    if bound["index"] is None:
        return _masked(e, call, source, bound)
    return _indexed(e, call, source, bound["index"], int(bound["dim"]) % len(source.shape))


def _compared(e: FunctionEmitter, call: Call, source: Tensor, bound: Bound) -> tuple[Tensor, ...]:
    assert isinstance(call.type, TupleType)
    rows, types = source.shape[0], [t for t in call.type.elements if isinstance(t, TensorType)]
    shapes = (rows, i64(bound["out_cols"])), (i64(1), rows)
    places, counts = (buffer(e, call, shape, type_.dtype) for shape, type_ in zip(shapes, types, strict=True))
    compare = chosen(bound["cmp_mode"], COMPARISONS, "cmp_mode")
    find_matches(e, source, places, counts, compare, bound["kvalue"], bound["offset"])
    return places, counts


def _masked(e: FunctionEmitter, call: Call, source: Tensor, bound: Bound) -> Tensor:
    assert isinstance(call.type, TensorType)
    pattern = pattern_of(bound["mask_pattern"])
    rows, columns = source.shape
    if static(columns) is None:
        ragged = e.b.compare("icmp ne", e.b.op("urem", columns, i64(pattern.step)), i64(0))
        e.stop(ragged, f"{pattern.name} takes one of {pattern.step} columns, which must divide them\n{CUT}", call)
    width = static(columns)
    count = e.b.op("udiv", columns, i64(pattern.step)) if width is None else i64(width // pattern.step)
    with made_for(e, call, (rows, count), call.type.dtype) as made:
        take_columns(e, source, made, pattern)
    return made


def _indexed(e: FunctionEmitter, call: Call, source: Tensor, index: Tensor, axis: int) -> Tensor:
    for position, (want, have) in enumerate(zip(index.shape, source.shape, strict=True)):
        if position != axis and want != have and (static(want) is None or static(have) is None):
            e.stop(e.b.compare("icmp sgt", want, have), f"an index is larger than its input\n{SMALLER}", call)
    made = buffer(e, call, index.shape, source.dtype, valid=index.valid, clear=index.valid != index.shape)
    last = axis == len(source.shape) - 1
    step, along = source.strides[axis], i64(0) if last else source.strides[-1]
    with rows_of(e, index.valid[:-1]) as rows:
        e.worked(PIECE)
        at, go = (moved(e, tensor, (*rows, i64(0))) for tensor in (index, made))
        if e.checked:
            largest = Largest(e, index.dtype)
            largest.see(at, index.strides[-1], index.valid[-1])
            largest.stop_outside(call, source.shape[axis], "index", index.valid[-1])
        places = [*rows, i64(0)]
        places[axis] = i64(0)
        base = moved(e, source, places)
        Taking(e, source.dtype, base, at, index.dtype, step, along, go, apart=index.strides[-1]).row(index.valid[-1])
    return made


@lowers("tensor.gather_row")
def _gather_row(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    e.flush()
    copy_window(e, call, bound["src"], bound["dst"], bound)
    return bound["dst"]


@lowers("tensor.paged_gather")
def _paged_gather(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    e.flush()
    source, indices, table = bound["src"], _listed(bound["indices"]), _listed(bound["block_table"])
    size, most, block = i64(bound["size"]), i64(bound["max_indices"]), i64(bound["block_size"])
    first, count = e.index(bound["col_off"]), indices.shape[0]
    fits = inside(e, (first, i64(0)), (size, count), (source.shape[1], most))
    if fits is not None:
        e.stop(e.negated(fits), "columns outside src, or more indices than max_indices", call)
    check(e, call, indices, indices.shape, times(e, table.shape[0], block), "indices")
    shape = (size, most) if bound["is_trans"] else (most, size)
    start = moved(e, source, (i64(0), first))

    def row_of(position: Value) -> Value:
        found = number(e, at_column(e, indices.pointer, position, indices.strides[0], indices.dtype), indices.dtype)
        page, rest = (e.b.op(name, found, block) for name in ("udiv", "urem"))
        held = number(e, at_column(e, table.pointer, page, table.strides[0], table.dtype), table.dtype)
        return e.b.op("add", e.b.op("mul", held, block), rest)

    def copied(made: Tensor, streaming: bool) -> None:
        across, along = made.strides[::-1] if bound["is_trans"] else made.strides
        with e.b.loop(i64(0), count, i64(1)) as position:
            row = row_of(position)
            exact = pointing_outside("block_table", row, source.shape[0])
            e.stop(e.b.compare("icmp uge", row, source.shape[0]), outside("block_table"), call, exact)
            later = e.b.intrinsic("llvm.smin", e.b.op("add", position, i64(AHEAD)), e.b.op("sub", count, i64(1)))
            ahead = at_column(e, start, row_of(later), source.strides[0], source.dtype)
            fetch_ahead(e, ahead, bound["size"] * source.dtype.get_byte())
            come = at_column(e, start, row, source.strides[0], source.dtype)
            go = at_column(e, made.pointer, position, across, source.dtype)
            copy_row(e, source.dtype, Row(come, source.strides[1]), Row(go, along), size, streaming=streaming)

    with made_for(e, call, shape, source.dtype, clear=static(count) != bound["max_indices"]) as made:
        fill_rows(e, made, size, lambda streaming: copied(made, streaming))
    return made


def _listed(tensor: Tensor) -> Tensor:
    """Return a list of numbers: a tensor of one axis, or the only row of a matrix."""
    shape, strides = tensor.shape[-1:], tensor.strides[-1:]
    return Tensor(tensor.pointer, shape, strides, shape, tensor.dtype, tensor.root)
