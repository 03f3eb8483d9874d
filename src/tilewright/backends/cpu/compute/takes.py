"""Takes: rows and elements of a tensor read where indices say, and written there."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.backends.cpu.compute.addresses import moved, product, read_of, view_of
from tilewright.backends.cpu.compute.convert import as_element, bits_of
from tilewright.backends.cpu.compute.copies import known_or, rows_of, tile_type, whole_extents
from tilewright.backends.cpu.compute.element_gathers import Elements, Taking
from tilewright.backends.cpu.compute.indexed import check, raw_type
from tilewright.backends.cpu.compute.joined_gathers import can_join, joined
from tilewright.backends.cpu.compute.nodes import RowsNode
from tilewright.backends.cpu.compute.places import Places, Position, Visit
from tilewright.backends.cpu.compute.row_copies import Row, copy_row
from tilewright.backends.cpu.compute.store_targets import fill_rows, gathered
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Scalar, Tensor, Tile
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64


@lowers("tile.take")
def _take(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    if can_join(e, bound["x"], bound["indices"]):
        return joined(e, call, bound["x"], bound["indices"])
    places, type_ = Places(e, call, bound, None), tile_type(call)
    e.flush()  # what is recorded may write the tensor
    places.check()
    extents = (*places.extents, *whole_extents(type_)[1:]) if places.by_row else places.extents
    if e.step.in_place:
        node = RowsNode((bound["indices"],), dtype=type_.dtype, begin=places.row, later=places.later)
        rows = Tile(type_, known_or(type_, extents), node=node, owners=bound["indices"].owners)
        return e.record(rows) if e.step.joins else rows
    with gathered(e, type_, known_or(type_, extents)) as (result, made):
        if places.mask is not None:
            fill(e, made, extents, bound["pad"])
        elif not places.by_row:
            Elements(e, places.tensor, "undefined").fetch(places.index, made, extents)
            return result
        width = type_.dtype.get_byte() * prod(type_.shape[1:])
        places.each(_copying(places, made, extents, reads=True), width if places.by_row else 0)
    return result


@lowers("tile.pick")
def _pick(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, type_ = view_of(e, bound["x"]), tile_type(call)
    if bound["axis"] % len(source.shape):
        return _picked_columns(e, call, source, bound["indices"])
    valid = Tensor(source.pointer, source.valid, source.strides, source.valid, source.dtype, source.root)
    places = Places(e, call, {**bound, "x": valid, "mask": None, "axis": 0}, None)
    e.flush()  # an index may be read where it lies
    places.check()
    extents = (*places.extents, *source.valid[1:]) if places.by_row else places.extents
    result = e.fresh(type_, known_or(type_, extents))
    made = view_of(e, result)
    if places.by_row:
        places.each(_copying(places, made, extents, reads=True))
    else:
        Elements(e, valid, "undefined").fetch(places.index, made, extents)
    return result


def _picked_columns(e: FunctionEmitter, call: Call, source: Tensor, indices: Tile) -> Tile:
    """Emit the columns that indices in a line name, row by row."""
    places, type_, n = view_of(e, indices), tile_type(call), product(e, indices.valid)
    e.flush()  # an index may be read where it lies
    check(e, call, places, places.valid, source.valid[-1], "indices")
    apart = next((s for s, extent in zip(places.strides, indices.type.shape, strict=True) if extent > 1), i64(1))
    with gathered(e, type_, known_or(type_, (*source.valid[:-1], n))) as (result, made):

        def filled(streaming: bool) -> None:
            with rows_of(e, source.valid[:-1]) as rows:
                come, go = (moved(e, memory, (*rows, i64(0))) for memory in (source, made))
                index, step = (places.pointer, places.dtype), source.strides[-1]
                taking = Taking(e, type_.dtype, come, *index, step, i64(0), go, apart=apart, streaming=streaming)
                taking.row(n)

        fill_rows(e, made, n, filled)
    return result


@lowers("tile.put")
def _put(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    given, tensor = bound["values"], bound["x"]
    places = Places(e, call, bound, given.valid if isinstance(given, Tile) else None)
    source = read_of(e, given) if isinstance(given, Tile) else None
    e.flush()  # what is recorded may read the tensor
    places.check()
    rest = tensor.shape[1:] if source is None else source.valid[1:]
    extents = (*places.extents, *rest) if places.by_row else places.extents
    if source is not None:
        places.each(_copying(places, source, extents, reads=False))
        return tensor
    assert isinstance(given, Scalar)
    number = element_of(e, given, tensor)

    def store(_: Position, pointer: Value) -> None:
        with rows_of(e, extents[1:] if places.by_row else ()) as inner:
            at = pointer if not inner else moved(e, _row(tensor, pointer), inner)
            e.b.store(number, at, tensor.dtype.get_byte())

    places.each(store)
    return tensor


def fill(e: FunctionEmitter, tensor: Tensor, extents: Sequence[Value], number: Scalar) -> None:
    """Emit the writing of a number to all elements within some extents."""
    element = element_of(e, number, tensor)
    with rows_of(e, extents) as position:
        e.b.store(element, moved(e, tensor, position), tensor.dtype.get_byte())


def element_of(e: FunctionEmitter, number: Scalar, tensor: Tensor) -> Value:
    """Return a number as the elements of a tensor lie in memory."""
    return bits_of(as_element(Lanes(e.b, number.value, number.dtype), tensor.dtype))


def _copying(places: Places, tile: Tensor, extents: Sequence[Value], *, reads: bool) -> Visit:
    """Return what copies the element or row at a place of a tensor to its place in a tile, or back."""
    e, tensor = places.e, places.tensor
    dtype, type_ = tensor.dtype, raw_type(tensor.dtype)

    def element(position: Position, pointer: Value) -> None:
        ways = (pointer, moved(e, tile, position))
        come, go = ways if reads else ways[::-1]
        e.b.store(e.b.load(type_, come, dtype.get_byte()), go, dtype.get_byte())

    def row(position: Position, pointer: Value) -> None:
        *middle, columns = extents[1:]
        with rows_of(e, middle) as inner:
            there = Row(moved(e, _row(tensor, pointer), (*inner, i64(0))), tensor.strides[-1])
            here = Row(moved(e, tile, (*position, *inner, i64(0))), tile.strides[-1])
            copy_row(e, dtype, there if reads else here, here if reads else there, columns)

    return row if places.by_row else element


def _row(tensor: Tensor, pointer: Value) -> Tensor:
    """Return what lies at a place along the first axis."""
    return Tensor(pointer, tensor.shape[1:], tensor.strides[1:], tensor.valid[1:], tensor.dtype, tensor.root)
