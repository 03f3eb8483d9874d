"""Selections: columns taken by a pattern, the places of elements that compare, and blocks of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tilewright.backends.cpu.compute.addresses import is_read_in_place, moved, product, read_of, times, view_of
from tilewright.backends.cpu.compute.assemble import changing
from tilewright.backends.cpu.compute.convert import as_element
from tilewright.backends.cpu.compute.copies import (
    is_whole,
    known_or,
    packed,
    rows_of,
    tile_type,
    with_adjacent_rows,
)
from tilewright.backends.cpu.compute.indexed import at_column, check, number, raw_type, single, strips
from tilewright.backends.cpu.compute.nodes import ColumnsNode, mapped
from tilewright.backends.cpu.compute.row_copies import clear_row
from tilewright.backends.cpu.compute.storage import load
from tilewright.backends.cpu.compute.store_targets import fill_rows, gathered
from tilewright.backends.cpu.compute.streaming import store_past_caches
from tilewright.backends.cpu.compute.traced import Lanes, from_memory, to_memory
from tilewright.backends.cpu.compute.views import lying, seen
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import Scalar, Tensor, Tile, static
from tilewright.core.enums import MaskPattern
from tilewright.core.expr import Call
from tilewright.core.types import TileType, TupleType
from tilewright.native.llvm import I32, I64, TRUE, Value, i64, lanes, vector
from tilewright.ops.block_gather import BLOCK, WITHIN
from tilewright.ops.indices import chosen, pattern_of
from tilewright.ops.selection import COMPARE, COMPARISONS

# columns


def take_columns(e: FunctionEmitter, source: Tensor, made: Tensor, pattern: MaskPattern) -> None:
    """Emit a copy of the columns that a pattern takes, side by side, within the valid part of what is made."""
    rows, columns = made.valid
    groups = columns if pattern.step == 1 else e.b.op("udiv", source.valid[1], i64(pattern.step))

    def take(streaming: bool) -> None:
        with e.b.loop(i64(0), rows, i64(1)) as row:
            come, go = (moved(e, tensor, (row, i64(0))) for tensor in (source, made))
            _taken(e, source, (come, go), (groups, columns), pattern, streaming)

    fill_rows(e, made, columns, take)


def _taken(
    e: FunctionEmitter,
    source: Tensor,
    row: tuple[Value, Value],
    columns: tuple[Value, Value],
    pattern: MaskPattern,
    streaming: bool,
) -> None:
    type_, size, stride = raw_type(source.dtype), source.dtype.get_byte(), source.strides[-1]
    come, go = row

    def one(column: Value) -> None:
        place = e.b.op("add", times(e, column, i64(pattern.step)), i64(pattern.first))
        taken = e.b.load(type_, at_column(e, come, place, stride, source.dtype), size)
        e.b.store(taken, e.b.offset(go, column, type_), size)

    width = e.program.target.vector_bits // (8 * size)
    whole = vector(type_, width * pattern.step)

    def several(column: Value) -> None:
        wide = e.b.load(whole, e.b.offset(come, times(e, column, i64(pattern.step)), type_), size)
        picked = _shuffled(e, wide, [pattern.first + lane * pattern.step for lane in range(width)])
        _written(e, picked, e.b.offset(go, column, type_), size, streaming)

    _strip_mined(e, columns, stride, width, several, one)


def put_columns(
    e: FunctionEmitter, source: Tensor, target: Tensor, pattern: MaskPattern, held: Tensor | None = None
) -> None:
    """Emit a copy of the valid part of a matrix to the columns of another that a pattern takes.

    The columns between are what `held` has there; without it they stay as they are.
    """
    rows, columns = source.valid

    def put(streaming: bool) -> None:
        with e.b.loop(i64(0), rows, i64(1)) as row:
            come, go, kept = (moved(e, tensor, (row, i64(0))) for tensor in (source, target, held or target))
            _put(e, source, come, (go, kept), columns, pattern, streaming)

    if held is None or held.root is target.root:
        put(False)
    else:
        fill_rows(e, target, times(e, columns, i64(pattern.step)), put)


def _put(
    e: FunctionEmitter,
    source: Tensor,
    come: Value,
    into: tuple[Value, Value],
    columns: Value,
    pattern: MaskPattern,
    streaming: bool,
) -> None:
    type_, size, stride = raw_type(source.dtype), source.dtype.get_byte(), source.strides[-1]
    go, held = into

    def one(column: Value) -> None:
        first = times(e, column, i64(pattern.step))
        taken = e.b.load(type_, at_column(e, come, column, stride, source.dtype), size)
        for step in range(pattern.step):
            place = e.b.op("add", first, i64(step))
            if step == pattern.first:
                e.b.store(taken, e.b.offset(go, place, type_), size)
            elif held != go:
                e.b.store(e.b.load(type_, e.b.offset(held, place, type_), size), e.b.offset(go, place, type_), size)

    width = e.program.target.vector_bits // (8 * size)
    whole = vector(type_, width * pattern.step)

    def several(column: Value) -> None:
        given = e.b.load(vector(type_, width), e.b.offset(come, column, type_), size)
        first = times(e, column, i64(pattern.step))
        spread = _shuffled(e, given, [lane // pattern.step for lane in range(width * pattern.step)])
        kept = e.b.load(whole, e.b.offset(held, first, type_), size)
        mask = _lanes_of(pattern, width * pattern.step)
        _written(e, e.b.select(mask, spread, kept), e.b.offset(go, first, type_), size, streaming)

    _strip_mined(e, (columns, columns), stride, width, several, one)


def _written(e: FunctionEmitter, value: Value, pointer: Value, size: int, streaming: bool) -> None:
    """Emit the store of a vector of elements of some size."""
    if streaming:
        store_past_caches(e.b, value, pointer, lanes(value.type) * size)
    else:
        e.b.store(value, pointer, size)


def _strip_mined(
    e: FunctionEmitter,
    columns: tuple[Value, Value],
    stride: Value,
    width: int,
    several: Callable[[Value], None],
    one: Callable[[Value], None],
) -> None:
    """Emit columns several at a time as far as they are whole and adjacent, and one by one what is left."""
    there, count = columns
    whole: Value = i64(0)
    if static(stride) == 1:
        known = static(there)
        whole = i64(known // width * width) if known is not None else e.b.op("and", there, i64(-width))
        with e.b.loop(i64(0), whole, i64(width)) as column:
            several(column)
    with e.b.loop(whole, count, i64(1)) as column:
        one(column)


def _shuffled(e: FunctionEmitter, value: Value, order: list[int]) -> Value:
    mask = f"<{len(order)} x i32> <{', '.join(f'i32 {lane}' for lane in order)}>"
    type_ = vector(value.type.split(" x ")[1].rstrip(">"), len(order))
    return e.b.value(type_, f"shufflevector {value}, {value.type} poison, {mask}")


@lowers("tile.gather_mask")
def _gather_mask(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    tile, type_, pattern = bound["src"], tile_type(call), pattern_of(bound["mask_pattern"])
    rows, columns = tile.valid
    valid = known_or(type_, (rows, columns_taken(e, columns, pattern)))
    if e.step.reloads:
        source = lying(e, tile)
        first = moved(e, source, (i64(0), i64(pattern.first)))
        strides = (source.strides[0], times(e, source.strides[1], i64(pattern.step)))
        taken = replace(source, pointer=first, strides=strides, dtype=type_.dtype)
        return seen(e, type_, tile, taken, valid)
    source = view_of(e, tile)
    result = e.fresh(type_, valid)
    take_columns(e, source, view_of(e, result), pattern)
    return result


def _every(pattern: MaskPattern, held: Lanes, put: Lanes) -> Lanes:
    """Return lanes of which a pattern takes some from elsewhere."""
    b, taken = held.b, _lanes_of(pattern, held.count)
    return from_memory(b, b.select(taken, to_memory(put), to_memory(held)), held.element)


def _lanes_of(pattern: MaskPattern, count: int) -> Value:
    """Return which of so many columns a pattern takes."""
    taken = (lane % pattern.step == pattern.first for lane in range(count))
    return Value(vector("i1", count), f"<{', '.join(f'i1 {str(bit).lower()}' for bit in taken)}>")


def columns_taken(e: FunctionEmitter, columns: Value, pattern: MaskPattern) -> Value:
    """Return how many of the first so many columns a pattern takes."""
    if pattern.step == 1:
        return columns
    left = e.b.op("add", columns, i64(pattern.step - 1 - pattern.first))
    return e.b.op("sdiv", e.b.intrinsic("llvm.smax", left, i64(0)), i64(pattern.step))


@lowers("tile.scatter_mask")
def _scatter_mask(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    src, dst, pattern = bound["src"], bound["dst"], pattern_of(bound["mask_pattern"])
    if e.step.joins:
        spread = e.record(Tile(dst.type, dst.valid, node=ColumnsNode((src,), step=pattern.step)))
        return mapped(e, tile_type(call), dst.valid, partial(_every, pattern), (dst, spread), goes_on=True)
    source = read_of(e, src)
    if is_read_in_place(e, dst) and is_whole(dst) and is_whole(src):
        held = read_of(e, dst)
        with gathered(e, dst.type, dst.valid) as (result, made):
            put_columns(e, source, made, pattern, held)
        return result
    result = changing(e, call, dst)
    put_columns(e, source, view_of(e, result), pattern)
    return result


# comparisons


def find_matches(
    e: FunctionEmitter, source: Tensor, places: Tensor, counts: Tensor, compare: str, kvalue: Scalar, offset: int
) -> None:
    """Emit, for each row, the numbers of matching columns, zeros after the last, and how many match."""
    rows, columns = source.valid
    number_ = as_element(Lanes(e.b, kvalue.value, kvalue.dtype), source.dtype)
    width, type_ = e.lanes, memory_type(source.dtype)
    spread = Lanes(e.b, e.b.splat(number_.value, width), source.dtype)
    count = e.b.slot(I64)
    room = places.shape[1]
    with e.b.loop(i64(0), rows, i64(1)) as row:
        come, go = (moved(e, tensor, (row, i64(0))) for tensor in (source, places))
        clear_row(e, go, times(e, room, i64(4)))
        e.b.store(i64(0), count, 8)

        def strip(column: Value, width: int, mask: Value | None) -> None:
            raw = load(e.b, vector(type_, width), e.b.offset(come, column, type_), source.dtype.get_byte(), mask)
            flags = COMPARE[compare](from_memory(e.b, raw, source.dtype), spread).value
            flags = flags if mask is None else e.b.op("and", flags, mask)
            bits = e.b.convert("zext", e.b.convert("bitcast", flags, f"i{width}"), I64)
            _note(e, bits, e.b.op("add", column, i64(offset)), count, go, room)

        strips(e, columns, width, strip)
        total = e.b.convert("trunc", e.b.load(I64, count, 8), I32)
        e.b.store(total, moved(e, counts, (i64(0), row)), 4)


def _note(e: FunctionEmitter, bits: Value, first: Value, count: Value, go: Value, room: Value) -> None:
    """Emit the writing of the numbers of set bits after those that were written before."""
    b, matches = e.b, e.b.intrinsic("llvm.ctpop", bits)
    before = b.load(I64, count, 8)
    b.store(b.op("add", before, matches), count, 8)
    left = b.intrinsic("llvm.smax", b.op("sub", room, before), i64(0))
    loop = b.open_loop(i64(0), b.intrinsic("llvm.smin", matches, left), i64(1), (bits,))
    (rest,) = loop.values
    place = b.op("add", first, b.intrinsic("llvm.cttz", rest, TRUE))
    b.store(b.convert("trunc", place, I32), b.offset(go, b.op("add", before, loop.index), I32), 4)
    b.close_loop(loop, (b.op("and", rest, b.op("sub", rest, i64(1))),))


@lowers("tile.gather_compare")
def _gather_compare(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[Tile, ...]:
    source = view_of(e, with_adjacent_rows(e, bound["src"]))
    assert isinstance(call.type, TupleType)
    types = [type_ for type_ in call.type.elements if isinstance(type_, TileType)]
    rows = source.valid[0]
    made = [
        e.fresh(type_, known_or(type_, valid))
        for type_, valid in zip(types, ((rows, i64(types[0].shape[1])), (i64(1), rows)), strict=True)
    ]
    compare = chosen(bound["cmp_mode"], COMPARISONS, "cmp_mode")
    places, counts = (view_of(e, tile) for tile in made)
    find_matches(e, source, places, counts, compare, bound["kvalue"], bound["offset"])
    return tuple(made)


# blocks


@lowers("tile.gatherb")
def _gather_blocks(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    given, type_ = packed(e, bound["src"]), tile_type(call)
    source, offsets = view_of(e, given), view_of(e, bound["offset"])
    nbytes = times(e, product(e, source.shape), i64(given.type.dtype.get_byte()))
    whole = is_whole(given)
    if whole:
        check(e, call, offsets, offsets.valid, e.b.op("sub", nbytes, i64(BLOCK - 1)), "offset", unsigned=True)
    lanes = BLOCK // type_.dtype.get_byte()
    rows, columns = offsets.valid
    result = e.fresh(type_, known_or(type_, (rows, times(e, columns, i64(lanes)))))
    made, block = view_of(e, result), vector("i8", BLOCK)
    with rows_of(e, (rows,)) as (row,):
        at, go = (moved(e, tensor, (row, i64(0))) for tensor in (offsets, made))

        def one(column: Value) -> None:
            place = number(e, at_column(e, at, column, offsets.strides[1], offsets.dtype), offsets.dtype)
            if not whole:
                _check_block(e, call, given, place)
            taken = e.b.load(block, e.b.offset(source.pointer, place, "i8"), 1)
            e.b.store(taken, e.b.offset(go, column, block), 1)

        single(e, columns, 4, one)
    return result


def _check_block(e: FunctionEmitter, call: Call, tile: Tile, place: Value) -> None:
    """Emit the end of the function where a block of a partly valid tile is not valid as a whole."""
    size = tile.type.dtype.get_byte()
    pitch, live = tile.type.shape[1] * size, times(e, tile.valid[1], i64(size))
    end = e.b.op("add", place, i64(BLOCK))
    fits = e.b.compare("icmp ule", end, times(e, tile.valid[0], i64(pitch)))
    fits = e.b.op("and", fits, e.b.compare("icmp eq", live, i64(pitch)))
    row = e.b.compare("icmp ult", e.b.op("udiv", place, i64(pitch)), tile.valid[0])
    within = e.b.compare("icmp ule", e.b.op("add", e.b.op("urem", place, i64(pitch)), i64(BLOCK)), live)
    fits = e.b.op("or", fits, e.b.op("and", row, within))
    e.stop(e.negated(fits), f"a block of 32 bytes lies outside the valid part of a tile\n{WITHIN}", call)
