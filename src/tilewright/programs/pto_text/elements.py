"""Elements of tiles by place: read, written, picked and put, one by one or a row or a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.core.enums import MaskPattern
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL, INDEX
from tilewright.programs.pto_text.matrices import extents_along
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tile, element
from tilewright.programs.pto_text.words import (
    Given,
    as_far_as,
    each_element,
    in_vec,
    matrix,
    part_of,
    result,
    row_of,
    seen_as,
    writes,
)
from tilewright.programs.pto_text.writer import Writer

Places = Callable[[Number], Number]
"""Which line a turn of a loop is about."""


# single elements


@writes("tile.read")
def _read(w: Writer, call: Call, given: Given) -> Number:
    tile = in_vec(w, given["x"])
    read = element_of(w, tile, _place(w, tile, given["indices"], _type(call, 0).shape))
    return converted(w, read, BOOL) if _type(call, 0).dtype == BOOL else read


@writes("tile.write")
def _write(w: Writer, call: Call, given: Given) -> Tile:
    x = in_vec(w, given["x"])
    whole = _copy(w, call, x)
    _set(w, whole, _place(w, whole, given["indices"], _type(call, 0).shape), given["value"])
    return whole.along(x.axes)


def _type(call: Call, position: int) -> TileType:
    type_ = call.args[position].type
    assert isinstance(type_, TileType)
    return type_


def element_of(w: Writer, tile: Tile, place: Number) -> Number:
    """Write the element of a tile before which as many lie in its buffer."""
    name = w.name("element")
    operands, types = f"{tile.name}, {place.name}", f"{tile.type}, index"
    w.line(f"{name} = pto.tgetval ins({operands} : {types}) outs : {element(tile.dtype)}")
    return Number(name, tile.dtype)


def _set(w: Writer, tile: Tile, place: Number, value: Number) -> None:
    w.op("tsetval", [place, converted(w, value, tile.dtype)], tile)


def _place(w: Writer, tile: Tile, indices: Sequence[Number], shape: Sequence[int]) -> Number:
    """Write how many elements lie before one of a tile."""
    return _before(w, tile, row_of(w, indices, shape), indices[-1])


def _before(w: Writer, tile: Tile, row: Number, column: Number) -> Number:
    return computed(w, "add", [times(w, row, tile.room[1]), column], INDEX)


def times(w: Writer, number: Number, factor: int) -> Number:
    """Write a multiple of a number."""
    return computed(w, "mul", [number, w.constant(factor)], INDEX)


def _copy(w: Writer, call: Call, tile: Tile) -> Tile:
    """Write the copy of a tile, of which some elements are written next."""
    return w.op("tmov", [tile], result(w, call, tile.valid))


def element_at(w: Writer, tile: Tile, row: Number, column: Number) -> Number:
    """Write the element of a tile in a row and a column."""
    return element_of(w, tile, _before(w, tile, row, column))


def set_at(w: Writer, tile: Tile, row: Number, column: Number, value: Number) -> None:
    """Write a number to a row and a column of a tile."""
    _set(w, tile, _before(w, tile, row, column), value)


@writes("tile.scatter")
def _scatter(w: Writer, call: Call, given: Given) -> Tile:
    """Write elements one after the other, since PTO's `tscatter` knows rows alone."""
    target, source, places = (in_vec(w, given[name]) for name in ("dst", "src", "indexes"))
    whole = _copy(w, call, target)
    with each_element(w, source, _type(call, 1).shape) as at:
        number = converted(w, element_at(w, places, *at), INDEX)
        _set(w, whole, _stretched(w, whole, number), element_at(w, source, *at))
    return whole.along(target.axes)


def _stretched(w: Writer, tile: Tile, number: Number) -> Number:
    """Write how many elements lie before one that is counted along rows, which may be longer in a buffer."""
    more = tile.room[1] - tile.shape[1]
    if not more:
        return number
    row = computed(w, "floordiv", [number, w.constant(tile.shape[1])], INDEX)
    return computed(w, "add", [number, times(w, row, more)], INDEX)


def one_by_one(w: Writer, source: Tile, out: Tile) -> Tile:
    """Write the elements of a tile to another of as many, along the rows of both."""
    count = source.shape[0] * source.shape[1]
    with w.counted(w.constant(count), "number") as number:
        _set(w, out, _stretched(w, out, number), element_of(w, source, _stretched(w, source, number)))
    return out


# lines: rows or columns, one after the other


def lines(w: Writer, source: Tile, out: Tile, count: Number, places: tuple[Places, Places], size: int | None) -> None:
    """Write lines of a tile to lines of another, as many: blocks of `size` rows, columns where that is None."""
    with w.counted(count, "line") as turn:
        come, go = (place(turn) for place in places)
        zero, one = w.constant(0), w.constant(1)
        if size is None:
            shape, valid = (source.shape[0], 1), (source.valid[0], one)
            ends = (zero, come), (zero, go)
        else:
            shape, valid = (size, source.shape[1]), (w.constant(size), source.valid[1])
            ends = (times(w, come, size), zero), (times(w, go, size), zero)
        w.op("tmov", [part_of(w, source, ends[0], shape, valid)], part_of(w, out, ends[1], shape, valid))


def same(turn: Number) -> Number:
    """Return the line that a turn is about: the one it counts."""
    return turn


def stepped(w: Writer, first: int, step: int) -> Places:
    """Return the lines from one on, so many steps from one to the next."""
    return lambda turn: computed(w, "add", [times(w, turn, step), w.constant(first)], INDEX)


def _named(w: Writer, places: Tile) -> Places:
    """Return the lines that indices name, counted along rows."""
    return lambda turn: converted(w, element_of(w, places, _stretched(w, places, turn)), INDEX)


@writes("tile.pick")
def _pick(w: Writer, call: Call, given: Given) -> Tile:
    x, places, shape = in_vec(w, given["x"]), in_vec(w, given["indices"]), _type(call, 0).shape
    if len(shape) == 1:
        return _picked(w, call, x, places)
    count, extents = computed(w, "mul", [*places.valid], INDEX), extents_along(w, x, _type(call, 0))
    if given["axis"] % len(shape):
        out, size = result(w, call, (x.valid[0], count)), None
    else:
        size, extents[0] = prod(shape[1:-1]), count
        out = result(w, call, (times(w, count, size), x.valid[1]))
    lines(w, x, out, count, (_named(w, places), same), size)
    return as_far_as(out, matrix(call)[1], extents)


@writes("tile.gather")
def _gather(w: Writer, call: Call, given: Given) -> Tile:
    source, places = in_vec(w, given["src"]), in_vec(w, given["indices"])
    if source.room == source.shape and not places.axes:
        return w.op("tgather", [source, places], result(w, call, places.valid))
    return _picked(w, call, source, places)  # since `tgather` counts what lies between rows, too


@writes("tile.gather_mask")
def _gather_columns(w: Writer, call: Call, given: Given) -> Tile:
    source, pattern, type_ = in_vec(w, given["src"]), MaskPattern(given["mask_pattern"]), matrix(call)[1]
    if type_.dtype != source.dtype:
        source = seen_as(w, source, type_.dtype, source.shape, source.room, source.valid)
    known = source.valid[1].known
    if source.dtype.get_byte() <= _GATHERED and not source.is_column and known is not None:
        words = f"{{maskPattern = #pto.mask_pattern<{pattern.name}>}}"
        return w.op("tgather", [source], result(w, call, source.valid), words)
    more = computed(w, "add", [source.valid[1], w.constant(pattern.step - 1 - pattern.first)], INDEX)
    count = computed(w, "floordiv", [more, w.constant(pattern.step)], INDEX)
    out = result(w, call, (source.valid[0], count))
    lines(w, source, out, count, (stepped(w, pattern.first, pattern.step), same), None)
    return out


_GATHERED = 4
"""The most bytes of an element that PTO gathers by a pattern."""


def _picked(w: Writer, call: Call, x: Tile, places: Tile) -> Tile:
    """Write the element that each index names, counted along rows."""
    out = result(w, call, places.valid)
    with each_element(w, places, _type(call, 1).shape) as at:
        number = converted(w, element_at(w, places, *at), INDEX)
        set_at(w, out, *at, element_of(w, x, _stretched(w, x, number)))
    return out.along(places.axes)


@writes("tile.scatter_update")
def _update(w: Writer, call: Call, given: Given) -> Tile:
    """Write rows over those that indices name."""
    whole, source = _copy(w, call, in_vec(w, given["input"])), in_vec(w, given["src"])
    places = in_vec(w, given["index"])
    count = computed(w, "mul", [*places.valid], INDEX)
    lines(w, source, whole, count, (same, _named(w, places)), 1)
    return whole


@writes("tile.scatter_mask")
def _scatter_columns(w: Writer, call: Call, given: Given) -> Tile:
    whole, source = _copy(w, call, in_vec(w, given["dst"])), in_vec(w, given["src"])
    pattern = MaskPattern(given["mask_pattern"])
    lines(w, source, whole, source.valid[1], (same, stepped(w, pattern.first, pattern.step)), None)
    return whole
