"""Rows gathered: whole rows of a tensor, brought into a tile."""

from __future__ import annotations

from contextlib import nullcontext

from tilewright.backends.cpu.compute.addresses import counted, product, times, view_of
from tilewright.backends.cpu.compute.assemble import changing
from tilewright.backends.cpu.compute.copies import known_or, tile_type
from tilewright.backends.cpu.compute.element_gathers import Elements, adjacent, bounded
from tilewright.backends.cpu.compute.indexed import at_column, check, number, pointing_outside, raw_type
from tilewright.backends.cpu.compute.row_copies import Row, clear_row, copy_row, copy_window, fetch_ahead
from tilewright.backends.cpu.compute.store_targets import fill_rows, gathered
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64
from tilewright.ops.indices import chosen, outside
from tilewright.ops.memory_gather import COALESCE, OUT_OF_BOUNDS

AHEAD = 2
"""How many rows further on the one lies that is fetched while another is copied."""


@lowers("tile.mgather")
def _mgather(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    by_row = chosen(bound["coalesce"], COALESCE, "coalesce") == "row"
    mode = chosen(bound["gather_oob"], OUT_OF_BOUNDS, "gather_oob")
    given, mem = bound["idx"], bound["mem"]
    places = view_of(e, adjacent(e, given)) if isinstance(given, Tile) else given
    e.flush()  # the tensor may be written by what is recorded
    type_ = tile_type(call)
    asked = e.indices(bound["valid_shape"] or ())
    if by_row:
        return _rows(e, call, mem, places, mode, asked)
    extents = asked or places.valid
    elements = Elements(e, mem, mode)
    _check(e, call, places, extents, elements.count, mode)
    with gathered(e, type_, known_or(type_, extents)) as (result, made):
        elements.fetch(places, made, tuple(extents))
    return result


def _check(e: FunctionEmitter, call: Call, places: Tensor, extents: tuple[Value, ...], count: Value, mode: str) -> None:
    """Emit the end of the function where an index is too large, or where there is nothing to take."""
    if mode == "undefined":
        check(e, call, places, extents, count, "idx", unsigned=True)
    elif mode != "zero" and static(count) is None:
        some = e.b.compare("icmp sgt", product(e, extents), i64(0))
        nothing = e.b.op("and", e.b.compare("icmp eq", count, i64(0)), some)
        e.stop(nothing, outside("idx"), call, pointing_outside("idx", i64(0), count))


def _rows(e: FunctionEmitter, call: Call, mem: Tensor, places: Tensor, mode: str, asked: tuple[Value, ...]) -> Tile:
    type_, axes = tile_type(call), len(mem.shape) - 1
    limit = product(e, mem.shape[:axes])
    is_row = places.shape[0] == i64(1)
    extents = places.valid if not asked else (i64(1), asked[0]) if is_row else (asked[0], i64(1))
    _check(e, call, places, extents, limit, mode)
    columns = asked[1] if asked else i64(type_.shape[1])
    n = product(e, extents)
    nbytes = times(e, columns, i64(type_.dtype.get_byte()))
    step = places.strides[1] if is_row else places.strides[0]

    def row_at(k: Value) -> tuple[Value, Value | None]:
        found = number(e, at_column(e, places.pointer, k, step, places.dtype), places.dtype, unsigned=True)
        index, there = bounded(e, found, limit, mode)
        return e.b.offset(mem.pointer, counted(e, index, mem, axes), raw_type(mem.dtype)), there

    def copied(made: Tensor, streaming: bool) -> None:
        with e.b.loop(i64(0), n, i64(1)) as k:
            later = e.b.intrinsic("llvm.smin", e.b.op("add", k, i64(AHEAD)), e.b.op("sub", n, i64(1)))
            fetch_ahead(e, row_at(later)[0], type_.shape[1] * type_.dtype.get_byte())
            come, there = row_at(k)
            go = at_column(e, made.pointer, k, made.strides[0], type_.dtype)
            with nullcontext() if there is None else e.b.when(there):
                copy_row(e, type_.dtype, Row(come, mem.strides[-1]), Row(go, i64(1)), columns, streaming=streaming)
            if there is not None:
                with e.b.when(e.negated(there)):
                    clear_row(e, go, nbytes)

    with gathered(e, type_, known_or(type_, (n, columns))) as (result, made):
        fill_rows(e, made, columns, lambda streaming: copied(made, streaming))
    return result


@lowers("tile.gather_row")
def _gather_row(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    result = changing(e, call, bound["dst"])
    copy_window(e, call, bound["src"], view_of(e, result), bound)
    return result
