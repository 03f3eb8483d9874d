"""Views: the elements of a tile where they lie, seen through another shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.addresses import moved, origin_of, times, view_of
from tilewright.backends.cpu.compute.copies import (
    SLICE,
    as_tensor,
    copy_elements,
    inside,
    known_or,
    misfit,
    packed,
    tile_type,
    whole_extents,
)
from tilewright.backends.cpu.compute.extents import within
from tilewright.backends.cpu.compute.matrix_tiles import depth_of_tile
from tilewright.backends.cpu.compute.nodes import TurnedNode
from tilewright.backends.cpu.compute.words import Words, elements_of_word, tile_words
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import Group, StoreSink
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.undefined import sliced
from tilewright.backends.cpu.emit.values import LoadNode, Place, Scalar, Tensor, Tile, contiguous, static
from tilewright.core.expr import Call
from tilewright.core.types import TileType, swapped
from tilewright.dtypes import UINT32
from tilewright.native.llvm import I32, Value, i64
from tilewright.ops.reshape import FILL, Part, part_of


def view(type_: TileType, source: Tile, place: Place, valid: Sequence[Value]) -> Tile:
    """Return a tile that shares the memory of another and keeps it alive."""
    return Tile(type_, known_or(type_, valid), place=place, owners=source.owners)


def lying(e: FunctionEmitter, tile: Tile) -> Tensor:
    """Return where the elements of a tile lie that a view of it shows: in its tensor, where those are loaded anew."""
    if not e.step.reloads:
        return view_of(e, tile)
    assert isinstance(tile.node, LoadNode)
    return replace(origin_of(e, tile), shape=tile.node.tensor.shape[-len(tile.valid) :])


def seen(e: FunctionEmitter, type_: TileType, source: Tile, lies: Tensor, valid: Sequence[Value]) -> Tile:
    """Return the elements of a tile, or some of them, that lie somewhere: loaded from there, or as a view."""
    if not e.step.reloads:
        return view(type_, source, Place(lies.pointer, tuple(static(stride) or 0 for stride in lies.strides)), valid)
    apart = None if lies.dtype == type_.dtype else i64(1)
    node = LoadNode(tensor=lies, offsets=(i64(0),) * len(type_.shape), apart=apart)
    return e.record(Tile(type_, known_or(type_, valid), node=node))


@lowers("tile.move")
def _move(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return bound["tile"]


def turned(e: FunctionEmitter, call: Call, source: Tile, axis1: int, axis2: int) -> Tile:
    """Return a tile with two axes swapped; one that a product meets as it lies is not looked at here."""
    if e.step.in_place:
        return Tile(tile_type(call), source.valid[::-1], node=TurnedNode((source,)))
    place = e.stored(source)
    strides, valid = swapped(place.strides, axis1, axis2), swapped(source.valid, axis1, axis2)
    return view(tile_type(call), source, Place(place.pointer, strides), valid)


@lowers("tile.strided")
def _strided(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, steps, type_ = bound["x"], bound["steps"], tile_type(call)
    lies = lying(e, source)
    strides = tuple(times(e, stride, i64(step)) for stride, step in zip(lies.strides, steps, strict=True))
    return seen(e, type_, source, replace(lies, strides=strides), counted(e, source.valid, steps))


def counted(e: FunctionEmitter, extents: Sequence[Value], steps: Sequence[int]) -> tuple[Value, ...]:
    """Return how many elements there are along each axis, so far from one to the next."""
    return tuple(_counted(e, extent, step) for extent, step in zip(extents, steps, strict=True))


def _counted(e: FunctionEmitter, extent: Value, step: int) -> Value:
    if step == 1 or (known := static(extent)) is None:
        return extent if step == 1 else e.b.op("udiv", e.b.op("add", extent, i64(step - 1)), i64(step))
    return i64(-(-known // step))


@lowers("tile.flip")
def _flip(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Read what is valid from its last element on, or copy it so."""
    source, type_, axis = bound["x"], tile_type(call), bound["axis"]
    rank = len(type_.shape)
    named = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = {each % rank for each in named}
    lies = lying(e, source)
    starts = [_last(e, extent) if each in axes else i64(0) for each, extent in enumerate(source.valid)]
    back = (times(e, stride, i64(-1)) if each in axes else stride for each, stride in enumerate(lies.strides))
    turned = replace(lies, pointer=moved(e, lies, starts), strides=tuple(back))
    if e.step.reloads:
        found = seen(e, type_, source, turned, source.valid)
        assert isinstance(found.node, LoadNode)
        found.node.backwards = True
        return found
    result, zeros = e.fresh(type_, known_or(type_, source.valid)), (i64(0),) * rank
    rows = Tile(type_, result.valid, node=LoadNode(tensor=turned, offsets=zeros, backwards=True))
    e.emit_group(Group(rows.rows, [rows], [StoreSink(rows, tensor=as_tensor(result), offsets=zeros)]))
    return result


def _last(e: FunctionEmitter, extent: Value) -> Value:
    """Return the last of so many numbers, 0 where there is none."""
    known = static(extent)
    if known is not None:
        return i64(max(known - 1, 0))
    return e.b.intrinsic("llvm.smax", e.b.op("sub", extent, i64(1)), i64(0))


@lowers("tile.reshape")
def _reshape(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    part = part_of(source.type, type_.shape)
    if part is None:
        return reshaped(e, call, source, type_)
    return _packed_view(e, source, type_, carried(e, source.valid, part))


def carried(e: FunctionEmitter, valid: Sequence[Value], part: Part) -> tuple[Value, ...]:
    """Return what is valid of a reshaped value, from what is of its source."""
    return tuple(i64(n) if isinstance(n, int) else _times(e, valid[n.axis], n.times) for n in part)


def _times(e: FunctionEmitter, extent: Value, times: int) -> Value:
    known = static(extent)
    if times == 1 or known is not None:
        return extent if known is None else i64(known * times)
    return e.b.op("mul", extent, i64(times))


def reshaped(e: FunctionEmitter, call: Call, source: Tile, type_: TileType) -> Tile:
    """Return a tile's elements in row-major order under another shape; it must be wholly valid."""
    for valid, extent in zip(source.valid, source.type.shape, strict=True):
        if static(valid) != extent:
            partly = e.b.compare("icmp ne", valid, i64(extent))
            e.fail(partly, f"only a wholly valid value can be reshaped\n{FILL}", call)
    return _packed_view(e, source, type_, whole_extents(type_))


def _packed_view(e: FunctionEmitter, source: Tile, type_: TileType, valid: Sequence[Value]) -> Tile:
    base = packed(e, source)
    assert base.place is not None
    return view(type_, base, Place(base.place.pointer, contiguous(type_.shape)), valid)


@lowers("tile.extract")
def _extract(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return _window(e, call, sliced(bound))


@lowers("tile.slice")
def _slice(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return _window(e, call, bound)


def _window(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Return a window of a tile; one that does not fit is an error and starts at zero."""
    source, type_ = bound["x"], tile_type(call)
    lies = lying(e, source)
    starts, sizes = e.indices(bound["offset"]), e.indices(bound["shape"])
    fits = inside(e, starts, sizes, whole_extents(source.type))
    if fits is not None:
        exact = misfit(e, SLICE, starts, sizes, whole_extents(source.type))
        e.fail(e.negated(fits), "a slice does not fit its tile", call, exact)
        starts = tuple(e.b.select(fits, start, i64(0)) for start in starts)
    wanted = _asked(e, call, bound["valid_shape"] or bound["shape"], sizes)
    dropped = {axis % len(starts) for axis in bound["drop_dims"] or ()}
    kept = [axis for axis in range(len(starts)) if axis not in dropped]
    known = dict(zip(kept, type_.valid, strict=True))
    valid = [i64(0) if known[a] is not None else _left(e, source, a, wanted[a], starts[a]) for a in kept]
    shape, strides = (tuple(numbers[a] for a in kept) for numbers in (lies.shape, lies.strides))
    window = replace(lies, pointer=moved(e, lies, starts), shape=shape, strides=strides)
    return seen(e, type_, source, window, valid)


def _asked(e: FunctionEmitter, call: Call, wanted: Sequence[Scalar], sizes: Sequence[Value]) -> list[Value]:
    """Return the asked valid extents; those that do not fit are an error, and cut."""
    asked: list[Value] = []
    for want, size in zip(e.indices(wanted), sizes, strict=True):
        asked.append(want if static(want) is not None else within(e, call, want, size))
    return asked


def _left(e: FunctionEmitter, source: Tile, axis: int, want: Value, start: Value) -> Value:
    """Return how much of what is wanted along an axis lies between a start and the end of what there is."""
    have = source.valid[axis]
    if static(start) == 0 and static(want) == source.type.shape[axis]:
        return have
    rest = e.b.op("sub", have, start)
    return e.b.intrinsic("llvm.smax", e.b.intrinsic("llvm.smin", want, rest), i64(0))


@lowers("tile.set_validshape")
def _set_validshape(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    asked = e.indices((bound["valid_rows"], bound["valid_cols"]))
    last = (
        given if static(given) is not None else within(e, call, given, i64(extent))
        for given, extent in zip(asked, type_.shape[-2:], strict=True)
    )
    valid = known_or(type_, (*source.valid[:-2], *last))
    return source if valid == source.valid else view(type_, source, e.stored(source), valid)


def make_words(e: FunctionEmitter, view: Tile) -> bool:
    """Emit the words of a transpose, if products read it so: its neighbours are turned as one word."""
    type_, place = view.type, view.place
    assert place is not None
    rows, columns = type_.shape[-2:]
    is_plain = len(type_.shape) == 2 and place.strides == (1, rows) and view.valid == whole_extents(type_)
    dtypes = type_.dtype, type_.dtype
    depth = depth_of_tile(e.program.target, *dtypes)
    words = tile_words(type_.dtype) if depth else Words(elements_of_word(e.program.target, *dtypes))
    if words.elements != 2 or rows % (depth or 2) or not is_plain:
        return False
    part = e.arena.take(words.room(rows, columns))
    view.words = e.address(part[0])
    e.own(view, part)
    steps = rows // 2
    for first in range(0, columns, words.panel):
        source = Place(e.b.offset(place.pointer, i64(first * steps), I32), (1, steps))
        target = Place(e.b.offset(view.words, i64(first * steps), I32), (words.panel, 1))
        copy_elements(e, UINT32, source, target, (i64(steps), i64(min(words.panel, columns - first))))
    return True
