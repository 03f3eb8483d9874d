"""Words: the registry of what says an op, and what all of those functions share: shapes, results, memories.

A tile of more than two axes is a matrix of its last one; only the first of the others may be valid in part.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import FP32, INDEX, INT8, DataType
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import NoPtoError, Number, Tile, Value
from tilewright.programs.pto_text.writer import Writer

Given = dict[str, Any]
"""The arguments of an op by name: tiles, tensors and numbers as values of the text, all else as the program has it."""
Writes = Callable[[Writer, Call, Given], Value | tuple[Value, ...] | None]
OPS: dict[str, Writes] = {}
W = TypeVar("W", bound=Writes)
Pair = tuple[Number, Number]
ONE_BY_ONE = "take one matrix at a time, in a loop over the other axes"


def writes(*names: str) -> Callable[[W], W]:
    """Register what says some ops."""

    def signed_in(function: W) -> W:
        OPS.update(dict.fromkeys(names, function))
        return function

    return signed_in


KNOWS_PARTS = {
    *("tile.load", "tile.store", "tile.put", "tile.take"),
    *(f"tensor.{name}" for name in ("slice", "set_validshape", "transpose", "strided", "reshape", "view", "dim")),
    *(f"tensor.{name}" for name in ("reinterpret_view", "aiv_shard", "assemble", "read", "write")),
}
"""The ops that may be about a tensor of which a part is valid."""
ALONE: dict[str, Writes] = {}
"""What says an op one element at a time, where no machine has it for all elements of a tile at once."""


# tiles that are valid in part along more than rows and columns


@contextmanager
def each_place(w: Writer, tile: Tile, shape: Sequence[int]) -> Generator[tuple[list[Number], Pair]]:
    """Let lines stand in loops over what is valid of a tile; give the place of each element, and its row and column."""
    with w.all_counted((*tile.axes, tile.valid[1]), "at") as places:
        yield places, (row_of(w, places, shape), places[-1])


@contextmanager
def each_element(w: Writer, tile: Tile, shape: Sequence[int]) -> Generator[Pair]:
    """Let lines stand in loops over what is valid of a tile, whatever its axes; give each element's row and column."""
    if tile.axes:
        with each_place(w, tile, shape) as (_, at):
            yield at
        return
    with w.all_counted(tile.valid, "at") as (row, column):
        yield row, column


def sizes_of(type_: TileType) -> list[int | None]:
    """Return how much of a tile is valid along each axis, None where only the run knows."""
    return [extent if isinstance(extent, int) else None for extent in type_.valid]


def is_ragged(shape: Sequence[int], sizes: Sequence[int | None]) -> bool:
    """Return whether the valid part of a tile may be other than the beginnings of its first rows."""
    rows = list(zip(shape[:-1], sizes[:-1], strict=True))
    while rows and rows[0][0] == 1:
        rows.pop(0)
    return any(size != extent for extent, size in rows[1:])


def meets_more(own: Sequence[int], whole: Sequence[int]) -> bool:
    """Return whether a tile is repeated along some axes before the last, and not along others."""
    shape = (1,) * (len(whole) - len(own)) + tuple(own)
    meets = all(n in (1, m) for n, m in zip(shape, whole, strict=False))
    return meets and prod(shape[:-1]) not in (1, prod(whole[:-1]))


def as_far_as(tile: Tile, type_: TileType, extents: Sequence[Number]) -> Tile:
    """Return a tile with how much of it is valid along each axis, where rows and columns do not say that."""
    return tile.along(extents[:-1]) if is_ragged(type_.shape, sizes_of(type_)) else tile


def no_function(name: str, types: Sequence[DataType], dtype: DataType) -> NoPtoError:
    """Return what to raise for a function that PTO has for other floats."""
    help = f"convert to {types[0]} first: pl.cast(x, pl.{types[0].symbol})"
    return NoPtoError(f"PTO has `{name}` for {' and '.join(map(str, types))}, not for {dtype}", help=help)


def refuse(call: Call, is_so: bool, what: str, help: str = "") -> None:
    """Raise where an op is one of a kind that nothing says."""
    if is_so:
        raise NoPtoError(f"this export has no words for `pl.{call.op.name}` {what}", help=help)


def flat(shape: Sequence[int]) -> tuple[int, int]:
    """Return the rows and columns of a tile of any rank."""
    return prod(shape[:-1]), shape[-1] if shape else 1


def matrix(call: Call) -> tuple[tuple[int, int], TileType]:
    """Return the rows and columns of what an op gives, and its type."""
    type_ = call.type
    assert isinstance(type_, TileType)
    return flat(type_.shape), type_


def refuse_batches(call: Call) -> None:
    """Raise for an op on matrices whose tiles hold several of them."""
    types = [each.type for each in (call, *call.args)]
    if any(isinstance(type_, TileType) and prod(type_.shape[:-2]) != 1 for type_ in types):
        raise NoPtoError(f"PTO's tiles have two axes, and `pl.{call.op.name}` is told more", help=ONE_BY_ONE)


def axes_of(w: Writer, tile: Tile, shape: Sequence[int]) -> list[Number]:
    """Write how much of a tile is valid along each axis but the last: all, but for the first that is more than one."""
    found = [w.constant(extent) for extent in shape[:-1]]
    first = next((axis for axis, extent in enumerate(shape[:-1]) if extent > 1), 0)
    found[first] = computed(w, "floordiv", [tile.valid[0], w.constant(prod(shape[first + 1 : -1]))], INDEX)
    return found


def result(w: Writer, call: Call, like: Pair, is_mask: bool = False, room: tuple[int, int] | None = None) -> Tile:
    """Write the buffer of a result, as much of it valid as its type says, or else as `like` says."""
    shape, type_ = matrix(call)
    sizes = sizes_of(type_)
    if is_ragged(type_.shape, sizes):
        sizes[:-1] = type_.shape[:-1]
    rows = like[0] if None in sizes[:-1] else w.constant(prod(size or 0 for size in sizes[:-1]))
    cols = like[1] if sizes[-1] is None else w.constant(sizes[-1])
    return w.tile(call.op.spec.name, type_.dtype, shape, (rows, cols), is_mask=is_mask, room=room)


def expanded(w: Writer, number: Number, tile: Tile) -> Tile:
    """Write a number to all elements of a tile, one by one where they are longer than those PTO fills.

    Floats of one byte are filled with as those of four, and converted.
    """
    if tile.dtype.is_float() and tile.dtype.get_byte() == 1:
        wide = w.tile("wide", FP32, tile.shape, tile.valid, room=tile.room)
        expanded(w, number if number.known is None else w.constant(number.known, FP32), wide)
        return w.op("tcvt", [wide], tile, "{rmode = #pto<round_mode RINT>, sat_mode = #pto<saturation_mode OFF>}")
    if tile.dtype.get_byte() <= _FILLED:
        return w.op("texpands", [number], tile)
    with w.counted(tile.valid[0], "row") as row, w.counted(tile.valid[1], "column") as column:
        start = computed(w, "mul", [row, w.constant(tile.room[1])], INDEX)
        w.op("tsetval", [computed(w, "add", [start, column], INDEX), number], tile)
    return tile


_FILLED = 4
"""The most bytes of an element that PTO's `texpands` takes."""


def in_vec(w: Writer, tile: Tile) -> Tile:
    """Return a tile where vectors read it; bits become bytes, zero or one."""
    if tile.is_mask:
        one, none = (
            w.op("texpands", [w.constant(value, INT8)], w.tile("side", INT8, tile.shape, tile.valid))
            for value in (1, 0)
        )
        return w.op("tsel", [tile, one, none], w.tile("bytes", INT8, tile.shape, tile.valid)).along(tile.axes)
    return tile if tile.memory is MemorySpace.Vec else moved(w, tile, MemorySpace.Vec)


def moved(w: Writer, tile: Tile, memory: MemorySpace) -> Tile:
    """Write the copy of a tile to a memory; return the copy."""
    return w.op("tmov", [tile], w.tile(tile.name[1:], tile.dtype, tile.shape, tile.valid, memory))


def lain_down(w: Writer, column: Tile) -> Tile:
    """Write a column as a row of the same bytes, those behind its last element included."""
    row = 1, column.room[0]
    return seen_as(w, column, column.dtype, row, row)


def with_room(w: Writer, tile: Tile, room: tuple[int, int]) -> Tile:
    """Return a tile in a buffer of as many rows and columns."""
    if tile.room == room:
        return tile
    return w.op("tmov", [tile], w.tile(tile.name[1:], tile.dtype, tile.shape, tile.valid, room=room))


def as_valid(w: Writer, tile: Tile, valid: Pair) -> Tile:
    """Return a tile of which as much is valid as of what it meets."""
    if all(own.name == other.name for own, other in zip(tile.valid, valid, strict=True)):
        return tile
    return front(w, tile, tile.shape, valid)


def by_rows(w: Writer, name: str, ins: Sequence[Tile | Number], out: Tile) -> Tile:
    """Write an op that takes rows alone: where all of its tiles are columns, they lie down."""
    if not out.is_column:
        return w.op(name, ins, out)
    columns = [with_room(w, each, out.room) if isinstance(each, Tile) else each for each in ins]
    w.op(name, [lain_down(w, each) if isinstance(each, Tile) else each for each in columns], lain_down(w, out))
    return out


def matrix_of(w: Writer, shape: Sequence[int], sizes: Sequence[Number]) -> tuple[Number, Number]:
    """Return the rows and columns that as many elements along each axis fill."""
    known = [size.known if isinstance(size.known, int) else None for size in sizes]
    if is_ragged(shape, known):
        return w.constant(prod(shape[:-1])), sizes[-1]
    rows = w.constant(1)
    for size in sizes[:-1]:
        rows = computed(w, "mul", [rows, size], INDEX)
    return rows, sizes[-1]


def whole_of(w: Writer, shape: tuple[int, int]) -> Pair:
    """Return all rows and columns of a shape."""
    return w.constant(shape[0]), w.constant(shape[1])


def row_of(w: Writer, offsets: Sequence[Number], shape: Sequence[int]) -> Number:
    """Write which row of a matrix a place among several axes is."""
    row = w.constant(0)
    for axis, offset in enumerate(offsets[:-1]):
        step = computed(w, "mul", [offset, w.constant(prod(shape[axis + 1 : -1]))], INDEX)
        row = computed(w, "add", [row, step], INDEX)
    return row


def least(w: Writer, left: Number, size: Number) -> Number:
    """Write the smaller of two extents."""
    return computed(w, "min", [left, size], INDEX)


def within(w: Writer, left: Number, size: Number) -> Number:
    """Write how much of an extent is left, which is nothing where it has ended."""
    return computed(w, "max", [least(w, left, size), w.constant(0)], INDEX)


def last_of(w: Writer, count: Number) -> Number:
    """Write the number of the last of so many, zero where there is none: readers refuse places before the first."""
    return computed(w, "max", [computed(w, "sub", [count, w.constant(1)], INDEX), w.constant(0)], INDEX)


def rows_for(w: Writer, source: Tile, own: Sequence[int], whole: Sequence[int]) -> Tile:
    """Write the rows of a tile that stand for each place along the axes before the last of something else.

    Those of an axis of one are repeated, and of one that is longer the first are taken.
    """
    shape, last, rows = (1,) * (len(whole) - len(own)) + tuple(own), own[-1], prod(whole[:-1])
    out = w.tile("rows", source.dtype, (rows, last), (w.constant(rows), w.constant(last)))
    with w.all_counted([w.constant(extent) for extent in whole[:-1]], "at") as go:
        come = [w.constant(0) if n == 1 else at for n, at in zip(shape[:-1], go, strict=True)]
        zero, one, cols = w.constant(0), w.constant(1), w.constant(last)
        numbers = row_of(w, [*come, zero], shape), row_of(w, [*go, zero], whole)
        pairs = zip((source, out), numbers, strict=True)
        parts = [part_of(w, tile, (row, zero), (1, last), (one, cols)) for tile, row in pairs]
        w.op("tmov", parts[:1], parts[1])
    return out


def filled_around(w: Writer, hint: str, dtype: DataType, shape: tuple[int, int], value: float, part: Pair) -> Tile:
    """Write a tile of a number all over, and let only a part of it be valid: what is written next goes there."""
    tile = w.tile(hint, dtype, shape, w.open(shape))
    expanded(w, w.constant(value, tile.dtype), tile)
    w.resize(tile, part)
    return tile


def put_over(w: Writer, whole: Tile, source: Tile, at: Pair) -> Tile:
    """Write a tile over another, from some row and column on."""
    w.op("tmov", [source], part_of(w, whole, at, source.shape, source.valid))
    return whole


def all_moved(w: Writer, source: Tile, out: Tile) -> Tile:
    """Write a tile to another one, with what is not valid of it: more of it may be valid again."""
    if all(tuple(number.known for number in each.valid) == source.shape for each in (source, out)):
        return w.op("tmov", [source], out)
    start = w.constant(0), w.constant(0)
    every, target = (part_of(w, each, start, source.shape, whole_of(w, source.shape)) for each in (source, out))
    w.op("tmov", [every], target)
    return out


def part_of(w: Writer, tile: Tile, at: Pair, shape: tuple[int, int], valid: Pair) -> Tile:
    """Write a window of a tile, in the same bytes."""
    window = replace(tile, name=w.name("part"), shape=shape, room=shape, valid=valid, runs_down=tile.is_column)
    places, sizes, extents = (
        ", ".join(each) for each in ([n.name for n in at], map(str, shape), [n.name for n in valid])
    )
    w.line(
        f"{window.name} = pto.subview {tile.name}[{places}] sizes [{sizes}] valid [{extents}]"
        f" : {tile.type} -> {window.type}"
    )
    return window


def seen_as(
    w: Writer,
    tile: Tile,
    dtype: DataType,
    shape: tuple[int, int],
    room: tuple[int, int],
    valid: Pair | None = None,
) -> Tile:
    """Write the bytes of a tile as one of another shape or other elements, all of it valid unless that is said."""
    valid = valid or (w.constant(shape[0]), w.constant(shape[1]))
    is_other = any(new.known is None and new.name != old.name for new, old in zip(valid, tile.valid, strict=True))
    seen = Tile(w.name("seen"), dtype, shape, w.unknown(valid) if is_other else valid, room=room)
    w.line(f"{seen.name} = pto.treshape {tile.name} : {tile.type} -> {seen.type}")
    if is_other:  # as many rows and columns are valid as were, unless somebody says otherwise
        w.resize(seen, valid)
    return seen


def front(w: Writer, tile: Tile, shape: tuple[int, int], valid: Pair) -> Tile:
    """Write the first rows and columns of a tile as one of their own."""
    window = part_of(w, tile, (w.constant(0), w.constant(0)), shape, valid)
    return w.op("tmov", [window], w.tile("front", tile.dtype, shape, valid))
