"""Copies: elements brought from one place to another as they are."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from tilewright.arrays import np
from tilewright.backends.cpu.compute.storage import first_lanes, splat, store
from tilewright.backends.cpu.compute.streaming import LINE, emit_streaming, lines_pay, store_past_caches
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import Group, StoreSink
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import LoadNode, Place, Tensor, Tile, contiguous, static
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import UINT8, UINT16, UINT32, UINT64, DataType
from tilewright.native.llvm import I1, I8, I64, PTR, Value, i64

_BITS = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}
"""The type whose elements are copied in place of others of that many bytes."""


def tile_type(call: Call) -> TileType:
    """Return the type of a call that gives a tile."""
    assert isinstance(call.type, TileType)
    return call.type


def whole_extents(type_: TileType) -> tuple[Value, ...]:
    """Return the extents of a whole tile."""
    return tuple(i64(extent) for extent in type_.shape)


def is_whole(tile: Tile) -> bool:
    """Return whether a tile is surely valid as a whole."""
    return tile.valid == whole_extents(tile.type)


def known_or(type_: TileType, valid: Sequence[Value]) -> tuple[Value, ...]:
    """Return valid extents, as constants where the type knows them."""
    return tuple(i64(k) if isinstance(k, int) else v for k, v in zip(type_.valid, valid, strict=True))


def copy(e: FunctionEmitter, source: Tile, target: Tile) -> None:
    """Emit a copy of a tile's valid part into another's place."""
    place = e.stored(source)
    assert target.place is not None
    copy_elements(e, source.type.dtype, place, target.place, source.valid)


def copy_whole(e: FunctionEmitter, source: Tile, target: Tile) -> None:
    """Emit a copy of all of a tile, what is not valid included."""
    place = e.stored(source)
    assert target.place is not None
    copy_elements(e, source.type.dtype, place, target.place, whole_extents(source.type))


def copy_elements(e: FunctionEmitter, dtype: DataType, source: Place, target: Place, extents: Sequence[Value]) -> None:
    """Emit a copy between places; neighbours along the target's last axis are adjacent."""
    known = [static(extent) for extent in extents]
    shape = tuple(extent for extent in known if extent is not None)
    if len(shape) == len(known) and source.strides == target.strides == contiguous(shape):
        copy_bytes(e, source.pointer, target.pointer, math.prod(shape) * dtype.get_byte())
        return
    if len(shape) == len(known) > 2 and dtype.get_byte() == 4 and source.strides[-1] == 1:
        _copy_rows(e, source, target, shape)
        return
    if len(extents) > 2:
        with e.b.loop(i64(0), extents[0], i64(1)) as index:
            inner = _along(e, dtype, source, index), _along(e, dtype, target, index)
            copy_elements(e, dtype, *inner, extents[1:])
        return
    across, along = (0, *source.strides)[-2:]
    matrix = source.pointer, i64(across), i64(along)
    _pack(e, dtype, matrix, (target.pointer, i64((0, *target.strides)[-2])), (i64(1), *extents)[-2:])


def copy_turned(e: FunctionEmitter, source: Tile, target: Tensor, starts: Sequence[Value]) -> None:
    """Emit a copy of a matrix that lies column by column to rows of a tensor, past the caches where that pays."""
    from tilewright.backends.cpu.compute.addresses import moved  # few programs copy what is turned

    place, begin = e.stored(source), moved(e, target, starts)
    across, along = place.strides
    matrix = place.pointer, i64(across), i64(along)
    copy_columns(e, source.type.dtype, matrix, source.valid, target, (begin, target.strides[-2]))


def copy_columns(
    e: FunctionEmitter,
    dtype: DataType,
    source: tuple[Value, Value, Value],
    extents: Sequence[Value],
    target: Tensor,
    rows: tuple[Value, Value],
) -> None:
    """Emit the same of a matrix at an address with two strides, to rows that begin somewhere, so far apart."""
    fills_lines = e.program.target.vector_bits == 8 * LINE and dtype.get_byte() >= 4
    pays = lines_pay(e, target, rows[0], target.strides[:-1]) if fills_lines else None

    def copied(streaming: bool) -> None:
        _pack(e, dtype, source, rows, extents, streaming=streaming)

    emit_streaming(e, pays, copied)


def _pack(
    e: FunctionEmitter,
    dtype: DataType,
    source: tuple[Value, Value, Value],
    rows: tuple[Value, Value],
    extents: Sequence[Value],
    *,
    streaming: bool = False,
) -> None:
    from tilewright.backends.cpu.compute.pack import PackSpec, emit_pack  # most programs copy no tile

    across, along = (static(stride) for stride in source[1:])
    spec = PackSpec(e.program.target, dtype.get_byte(), across == 1 and along != 1, streaming)
    spec = spec.of(extents) if 1 in (across, along) else spec
    e.b.invoke(emit_pack(e.b.module, spec), *source, *rows, *extents)


def _copy_rows(e: FunctionEmitter, source: Place, target: Place, shape: tuple[int, ...]) -> None:
    """Emit a copy of rows of words, of which there are as many as everybody knows: one loop for all the axes."""
    extents, starts = tuple(map(i64, shape)), (i64(0),) * len(shape)
    read, written = (
        Tensor(place.pointer, extents, tuple(map(i64, place.strides)), extents, UINT32, object())
        for place in (source, target)
    )
    rows = Tile(TileType(shape, UINT32, shape), extents, node=LoadNode(tensor=read, offsets=starts))
    e.emit_group(Group(rows.rows, [rows], [StoreSink(rows, tensor=written, offsets=starts)]))


def copy_bytes(e: FunctionEmitter, source: Value, target: Value, count: int) -> None:
    """Emit a copy of adjacent bytes."""
    name = e.b.module.intrinsic("llvm.memcpy.p0.p0.i64", "void", PTR, PTR, I64, "i1")
    e.b.invoke(name, target, source, i64(count), Value(I1, "false"))


def clear_bytes(e: FunctionEmitter, target: Value, count: int) -> None:
    """Emit the writing of zero to adjacent bytes."""
    name = e.b.module.intrinsic("llvm.memset.p0.i64", "void", PTR, I8, I64, "i1")
    e.b.invoke(name, target, Value(I8, "0"), i64(count), Value(I1, "false"))


def _along(e: FunctionEmitter, dtype: DataType, place: Place, index: Value) -> Place:
    """Return where what lies at an index of the first axis is."""
    offset = e.b.op("mul", index, i64(place.strides[0]))
    return Place(e.b.offset(place.pointer, offset, memory_type(dtype)), place.strides[1:])


def packed(e: FunctionEmitter, tile: Tile) -> Tile:
    """Return a tile with its elements one after the other: itself, or a copy of all of it."""
    place = e.stored(tile)
    if place.strides == contiguous(tile.type.shape):
        return tile
    result = e.fresh(tile.type, tile.valid)
    result.owners = tile.owners
    copy_whole(e, tile, result)
    return result


def with_adjacent_rows(e: FunctionEmitter, tile: Tile) -> Tile:
    """Return a tile whose rows are read with plain loads: a turned view is copied, where that is not wanted so."""
    if tile.place is None or tile.is_column or tile.place.strides[-1] == 1 or e.step.turned:
        return tile
    result = e.fresh(tile.type, tile.valid)
    result.owners = tile.owners
    copy(e, tile, result)
    return result


def as_tensor(tile: Tile) -> Tensor:
    """Return the place of a tile as a tensor that is written to."""
    assert tile.place is not None
    whole, strides = whole_extents(tile.type), tuple(map(i64, tile.place.strides))
    return Tensor(tile.place.pointer, whole, strides, whole, tile.type.dtype, object())


def element_at(e: FunctionEmitter, dtype: DataType, place: Place, indices: Sequence[Value]) -> Value:
    """Return the address of one element of a place."""
    offset: Value = i64(0)
    for index, stride in zip(indices, place.strides, strict=True):
        if static(index) != 0:
            step = index if stride == 1 else e.b.op("mul", index, i64(stride))
            offset = step if static(offset) == 0 else e.b.op("add", offset, step)
    return e.b.offset(place.pointer, offset, memory_type(dtype))


def part(e: FunctionEmitter, dtype: DataType, place: Place, indices: Sequence[Value]) -> Place:
    """Return the same place from some indices on."""
    return Place(element_at(e, dtype, place, indices), place.strides)


@contextmanager
def rows_of(e: FunctionEmitter, extents: Sequence[Value]) -> Generator[tuple[Value, ...], None, None]:
    """Emit nested loops over some axes around what is emitted inside; give the index along each."""
    with ExitStack() as loops:
        yield tuple(
            i64(0) if static(extent) == 1 else loops.enter_context(e.b.loop(i64(0), extent, i64(1)))
            for extent in extents
        )


def inside(
    e: FunctionEmitter, starts: Sequence[Value], sizes: Sequence[Value], extents: Sequence[Value]
) -> Value | None:
    """Return whether a window lies within extents, None where that is certain or nobody checks."""
    fits: Value | None = None
    if not e.checked:
        return None
    for start, size, extent in zip(starts, sizes, extents, strict=True):
        if _surely_inside(start, size, extent):
            continue
        last = e.b.op("sub", extent, size)  # a start plus a size might be more than there are numbers
        here = e.b.op("and", e.b.compare("icmp sge", start, i64(0)), e.b.compare("icmp sle", start, last))
        fits = here if fits is None else e.b.op("and", fits, here)
    return fits


def misfit(
    e: FunctionEmitter, text: str, starts: Sequence[Value], sizes: Sequence[Value], extents: Sequence[Value]
) -> Exact:
    """Return what is wrong with a window that is not `inside`: the first axis along which it does not fit."""

    def numbers() -> Sequence[Value]:
        b, axes = e.b, list(enumerate(zip(sizes, starts, extents, strict=True)))
        found: Sequence[Value] = [i64(0)] * 4
        for axis, (size, start, extent) in reversed(axes):
            last = b.op("sub", extent, size)
            bad = b.op("or", b.compare("icmp slt", start, i64(0)), b.compare("icmp sgt", start, last))
            here = (i64(axis), size, start, extent)
            found = [b.select(bad, new, old) for new, old in zip(here, found, strict=True)]
        return found

    return Exact(f"axis {{0}}: {text} 0 to {{3}}", numbers)


SLICE, STORE = (f"a {what} of {{1}} element(s) at {{2}} does not fit" for what in ("slice", "store"))


def _surely_inside(start: Value, size: Value, extent: Value) -> bool:
    a, b, c = static(start), static(size), static(extent)
    if a == 0 and size == extent:
        return True
    return a is not None and b is not None and c is not None and 0 <= a and a + b <= c


def fill(e: FunctionEmitter, tile: Tile, number: float) -> None:
    """Emit the writing of one number to every element of a packed tile."""
    assert tile.place is not None
    fill_run(e, tile.type.dtype, tile.place.pointer, math.prod(tile.type.shape), number)


def fill_run(
    e: FunctionEmitter,
    dtype: DataType,
    pointer: Value,
    count: int,
    number: float,
    start: Value | None = None,
    *,
    streaming: bool = False,
) -> None:
    """Emit the writing of one number to so many elements, one after the other; what lies before `start` may be, too."""
    with np.errstate(over="ignore"):
        element: Any = np.asarray(number).astype(dtype.numpy)
    size = dtype.get_byte()
    bits = int(element.view(_BITS[size].numpy))
    lanes = e.program.target.vector_bits // (8 * size)
    type_, whole = f"<{lanes} x i{8 * size}>", count // lanes * lanes
    pattern, begin = splat(type_, bits), i64(0) if start is None else _whole_vectors(e, start, lanes)
    with e.b.loop(begin, i64(whole), i64(lanes)) as at:
        put = partial(store_past_caches, nbytes=lanes * size) if streaming else partial(store, align=size)
        put(e.b, pattern, e.b.offset(pointer, at, f"i{8 * size}"))
    if count > whole:
        last = e.b.offset(pointer, i64(whole), f"i{8 * size}")
        store(e.b, pattern, last, size, first_lanes(e.b, i64(count - whole), lanes))


def _whole_vectors(e: FunctionEmitter, count: Value, lanes: int) -> Value:
    """Return how many elements before some fill vectors."""
    known = static(count)
    return i64(known // lanes * lanes) if known is not None else e.b.op("and", count, i64(-lanes))
