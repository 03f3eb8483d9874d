"""Pipes: the functions of a group as coroutines, and the queues in which they hand each other tiles.

Each side is a task with a context of its own, through which pushes and pops find the queues. A node is a tile's room,
as `abi` has it, with the tile's extents and element type behind the valid ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.copies import copy_elements, known_or, part, tile_type
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.memory import room_of
from tilewright.backends.cpu.emit.values import Place, Scalar, Tile, contiguous
from tilewright.backends.cpu.host.abi import HEAD
from tilewright.core.expr import Call
from tilewright.core.pipes import OUTSIDE, STUCK
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX
from tilewright.native import pipes as co
from tilewright.native.context import Context
from tilewright.native.llvm import I64, PTR, Value, i64
from tilewright.ops.pipes import MOST_PIPES, axis_of, number_of

NULL = Value(PTR, "null")
ROWS, COLUMNS, KIND = 2, 3, 4
"""The words of a node that say what tile it holds."""

OTHER = "another tile was pushed than is taken here: its extents or its elements differ"


def define(e: FunctionEmitter) -> None:
    """Add what runs the sides of a group to the module, once."""
    for text in (*co.DECLARED, co.TEXT):
        e.b.module.declare(text)


def word(e: FunctionEmitter, base: Value, index: int) -> Value:
    """Return the address of a word."""
    return e.b.offset(base, i64(index), I64)


def _side(e: FunctionEmitter, call: Call) -> tuple[Value, Value]:
    """Return the running side and its frame; leave where there is none. Nothing is left for later."""
    define(e)
    e.flush()
    side = e.b.load(PTR, word(e, e.context, Context.PIPES), 8)
    e.stop(e.b.compare("icmp eq", side, NULL), OUTSIDE, call)
    return side, e.b.load(PTR, side, 8)


def _queue(e: FunctionEmitter, frame: Value, towards: str, id: int | None, lane: Value) -> Value:
    """Return the address of the first and last node of a queue."""
    first = co.QUEUES + 4 * (number_of(id) + MOST_PIPES * (towards == "aic"))
    return e.b.offset(word(e, frame, first), e.b.op("shl", lane, i64(1)), I64)


def _lane(e: FunctionEmitter, side: Value) -> Value:
    return e.b.load(I64, word(e, side, co.LANE), 8)


def _lanes(e: FunctionEmitter, frame: Value) -> Value:
    return e.b.load(I64, word(e, frame, co.LANES), 8)


def _kind(type_: TileType) -> int:
    return type_.dtype.code()


@lowers("tile.get_subblock_idx", "tensor.get_subblock_idx")
def _subblock(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    """Return the running lane, 0 outside of a group."""
    side = e.b.load(PTR, word(e, e.context, Context.PIPES), 8)
    inside = e.b.compare("icmp ne", side, NULL)
    lane = e.b.either(inside, lambda: _lane(e, side), lambda: i64(0))
    return Scalar(lane, INDEX)


@lowers("system.tpush_to_aic")
def _push_to_cube(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    side, frame = _side(e, call)
    _push(e, call, bound["tile"], frame, _queue(e, frame, "aic", bound["id"], _lane(e, side)))
    return ()


@lowers("system.tpush_to_aiv")
def _push_to_vector(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    tile: Tile = bound["tile"]
    _, frame = _side(e, call)
    axis, queues = axis_of(bound["split"]), [_queue(e, frame, "aiv", bound["id"], i64(lane)) for lane in range(2)]
    only: int | None = bound["lane"]
    if only is not None:
        _push(e, call, tile, frame, queues[only])
        return ()
    both = e.b.compare("icmp eq", _lanes(e, frame), i64(2))
    place = e.stored(tile)
    with e.b.when(both):
        for lane, queue in enumerate(queues):
            _push(e, call, tile if axis is None else _half(e, tile, place, axis, lane), frame, queue)
    with e.b.when(e.negated(both)):
        _push(e, call, tile, frame, queues[0])
    return ()


def _half(e: FunctionEmitter, tile: Tile, place: Place, axis: int, lane: int) -> Tile:
    """Return a lane's half of a tile; the first one is the larger."""
    size = -(-tile.type.shape[axis] // 2)
    shape, valid, start = list(tile.type.shape), list(tile.valid), [i64(0)] * len(tile.valid)
    shape[axis] = min(size, shape[axis] - lane * size)
    start[axis] = i64(lane * size)
    rest = e.b.intrinsic("llvm.smax", e.b.op("sub", valid[axis], i64(lane * size)), i64(0))
    valid[axis] = e.b.intrinsic("llvm.smin", rest, i64(shape[axis]))
    type_ = TileType(tuple(shape), tile.type.dtype, (None,) * len(shape), tile.type.memory)
    return Tile(type_, tuple(valid), place=part(e, type_.dtype, place, start), owners=tile.owners)


def _push(e: FunctionEmitter, call: Call, tile: Tile, frame: Value, queue: Value) -> None:
    """Emit the making of a node and its appending to a queue."""
    type_, place = tile.type, e.stored(tile)
    e.b.module.intrinsic("aligned_alloc", PTR, I64, I64)
    size = HEAD + -(-room_of(type_) // 64) * 64
    node = e.b.call(PTR, "aligned_alloc", i64(64), i64(size))
    e.stop(e.b.compare("icmp eq", node, NULL), "there is no memory for what is pushed", call)
    head = (*tile.valid, i64(type_.shape[0]), i64(type_.shape[1]), i64(_kind(type_)))
    for position, value in enumerate(head):
        e.b.store(value, word(e, node, position), 8)
    e.b.store(NULL, word(e, node, co.NEXT), 8)
    copy_elements(e, type_.dtype, place, Place(_elements(e, node), contiguous(type_.shape)), tile.valid)
    last_cell = word(e, queue, 1)
    last = e.b.load(PTR, last_cell, 8)
    empty = e.b.compare("icmp eq", last, NULL)
    link = e.b.select(empty, queue, word(e, last, co.NEXT))
    e.b.store(node, link, 8)
    e.b.store(node, last_cell, 8)
    progress = word(e, frame, co.PROGRESS)
    e.b.store(e.b.op("add", e.b.load(I64, progress, 8), i64(1)), progress, 8)


def _elements(e: FunctionEmitter, node: Value) -> Value:
    return e.b.offset(node, i64(HEAD), "i8")


@lowers("system.tpop_from_aic")
def _pop_from_cube(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    side, frame = _side(e, call)
    node = _take(e, call, side, frame, _queue(e, frame, "aiv", bound["id"], _lane(e, side)), bound["stuck"])
    return _taken(e, call, tile_type(call), [node])


@lowers("system.tpop_from_aiv")
def _pop_from_vector(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    side, frame = _side(e, call)
    type_, axis = tile_type(call), axis_of(bound["split"])
    queues = [_queue(e, frame, "aic", bound["id"], i64(lane)) for lane in range(2)]
    only: int | None = bound["lane"]
    stuck: str | None = bound["stuck"]
    if only is not None:
        return _taken(e, call, type_, [_take(e, call, side, frame, queues[only], stuck)])
    both = e.b.compare("icmp eq", _lanes(e, frame), i64(2))
    first = _take(e, call, side, frame, queues[0], stuck)
    second = e.b.slot(PTR)
    e.b.store(NULL, second, 8)
    with e.b.when(both):
        e.b.store(_take(e, call, side, frame, queues[1], stuck), second, 8)
    if axis is None:
        tile = _taken(e, call, type_, [first])
        e.b.invoke("free", e.b.load(PTR, second, 8))
        return tile
    return _joined(e, call, type_, axis, first, e.b.load(PTR, second, 8))


def _take(e: FunctionEmitter, call: Call, side: Value, frame: Value, queue: Value, stuck: str | None = None) -> Value:
    """Emit the taking of the oldest node; others run while there is none, and waiting for nobody is an error."""
    b = e.b
    head, wait, got = (b.label(hint) for hint in ("head", "wait", "got"))
    progress, caller = word(e, frame, co.PROGRESS), b.load(PTR, word(e, frame, co.CALLER), 8)
    b.do(f"br label %{head}")
    b.begin(head)
    node = b.load(PTR, queue, 8)
    b.do(f"br {b.compare('icmp ne', node, NULL)}, label %{got}, label %{wait}")
    b.begin(wait)
    before = b.load(I64, progress, 8)
    b.invoke("pipes.switch", side)
    failed = b.load(I64, word(e, caller, Context.ERROR), 8)
    with b.when(b.compare("icmp ne", failed, i64(0))):
        b.do(f"cmpxchg {word(e, e.context, Context.ERROR)}, i64 0, {failed} monotonic monotonic")
        e.leave(e.exit)
    still = b.compare("icmp eq", b.load(I64, progress, 8), before)
    nothing = b.compare("icmp eq", b.load(PTR, queue, 8), NULL)
    e.stop(b.op("and", still, nothing), stuck or STUCK, call)
    b.do(f"br label %{head}")
    b.begin(got)
    following = b.load(PTR, word(e, node, co.NEXT), 8)
    b.store(following, queue, 8)
    with b.when(b.compare("icmp eq", following, NULL)):
        b.store(NULL, word(e, queue, 1), 8)
    return node


def _taken(e: FunctionEmitter, call: Call, type_: TileType, nodes: Sequence[Value]) -> Tile:
    """Return the tile that a node holds, copied; the node is gone."""
    (node,) = nodes
    _check(e, call, type_, node)
    valid = tuple(e.b.load(I64, word(e, node, axis), 8) for axis in range(2))
    tile = e.fresh(type_, known_or(type_, valid))
    assert tile.place is not None
    copy_elements(e, type_.dtype, Place(_elements(e, node), contiguous(type_.shape)), tile.place, tile.valid)
    e.b.invoke("free", node)
    return tile


def _check(e: FunctionEmitter, call: Call, type_: TileType, node: Value) -> None:
    wanted = ((ROWS, type_.shape[0]), (COLUMNS, type_.shape[1]), (KIND, _kind(type_)))
    for position, number in wanted:
        differs = e.b.compare("icmp ne", e.b.load(I64, word(e, node, position), 8), i64(number))
        e.stop(differs, OTHER, call)


def _joined(e: FunctionEmitter, call: Call, type_: TileType, axis: int, first: Value, second: Value) -> Tile:
    """Return the halves of both lanes as one tile, or the only lane's whole one."""
    size = -(-type_.shape[axis] // 2)
    valid = [e.b.slot(I64) for _ in type_.shape]
    tile = e.fresh(type_, tuple(i64(0) for _ in type_.shape))
    assert tile.place is not None
    alone = e.b.compare("icmp eq", second, NULL)
    with e.b.when(alone):
        _copy_node(e, call, type_, first, tile.place, valid)
    with e.b.when(e.negated(alone)):
        _copy_node(e, call, _part_type(type_, axis, size), first, tile.place, valid)
        beyond = [i64(0)] * len(type_.shape)
        beyond[axis] = i64(size)
        own = [e.b.slot(I64) for _ in type_.shape]
        rest = _part_type(type_, axis, type_.shape[axis] - size)
        _copy_node(e, call, rest, second, part(e, type_.dtype, tile.place, beyond), own)
        more, have = e.b.load(I64, own[axis], 8), e.b.load(I64, valid[axis], 8)
        gap = e.b.op("and", e.b.compare("icmp sgt", more, i64(0)), e.b.compare("icmp slt", have, i64(size)))
        e.stop(gap, "the first lane's half holds less than the second one follows", call)
        e.b.store(e.b.op("add", have, more), valid[axis], 8)
    tile.valid = known_or(type_, [e.b.load(I64, slot, 8) for slot in valid])
    return tile


def _part_type(type_: TileType, axis: int, size: int) -> TileType:
    shape = list(type_.shape)
    shape[axis] = size
    return replace(type_, shape=tuple(shape), valid=(None,) * len(shape))


def _copy_node(
    e: FunctionEmitter, call: Call, type_: TileType, node: Value, place: Place, valid: Sequence[Value]
) -> None:
    """Emit the copying of a node's tile to a place, and of its valid extents to slots; the node is gone."""
    _check(e, call, type_, node)
    extents = [e.b.load(I64, word(e, node, axis), 8) for axis in range(2)]
    for extent, slot in zip(extents, valid, strict=True):
        e.b.store(extent, slot, 8)
    copy_elements(e, type_.dtype, Place(_elements(e, node), contiguous(type_.shape)), place, extents)
    e.b.invoke("free", node)


@lowers("system.tfree_to_aic", "system.tfree_to_aiv", "system.aic_initialize_pipe", "system.aiv_initialize_pipe")
def _declared(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    return ()


@lowers("system.reserve_buffer", "system.import_peer_buffer")
def _buffer(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(Value("i32", str(max(bound.get("base") or 0, 0))), call.type.dtype)  # pyright: ignore
