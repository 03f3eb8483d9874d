"""Padding: loads that reach past the edges of their tensor, whole tiles all the same."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.copies import fill, tile_type, whole_extents
from tilewright.backends.cpu.compute.extents import within
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import Group, StoreSink
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import LoadNode, Scalar, Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.dtypes import INDEX
from tilewright.native.llvm import Value, i64
from tilewright.ops.load import padding


def padded_load(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Emit a tile that holds what its tensor does, and a number everywhere else."""
    tensor, type_ = bound["tensor"], tile_type(call)
    wanted = bound["valid_shape"] or tuple(Scalar(i64(extent), INDEX) for extent in type_.shape)
    windows = [
        _window(e, call, (e.index(start), e.index(want), have), most)
        for start, want, have, most in zip(bound["offsets"], wanted, tensor.valid, type_.shape, strict=True)
    ]
    first, count, place = (tuple(values) for values in zip(*windows, strict=True))
    e.flush()
    result = e.fresh(type_, whole_extents(type_))
    result.owners = variables(call.args)  # until it has an owner of its own: emitting gives back what nobody reads
    partly = _differ(e, count, type_.shape)
    if partly is not None:
        with e.b.when(partly):
            fill(e, result, padding(bound["pad"], type_.dtype))
    _copy(e, tensor, first, count, result, place)
    result.owners = []
    return result


def _window(e: FunctionEmitter, call: Call, asked: tuple[Value, Value, Value], most: int) -> tuple[Value, Value, Value]:
    """Return where a tensor has elements for a load along one axis, how many, and where they go in the tile."""
    b, (start, want, have) = e.b, asked
    known = [number for number in map(static, asked) if number is not None]
    if len(known) == 3:
        first, count, place = _known_window(*known)
        return i64(first), i64(count), i64(place)
    want = want if static(want) is not None else within(e, call, want, i64(most))
    low = b.intrinsic("llvm.smin", b.intrinsic("llvm.smax", start, i64(0)), have)
    end = b.intrinsic("llvm.smin", b.intrinsic("llvm.sadd.sat", start, want), have)
    count = b.intrinsic("llvm.smax", b.op("sub", end, low), i64(0))
    some = b.compare("icmp sgt", count, i64(0))
    return low, count, b.select(some, b.op("sub", low, start), i64(0))


def _known_window(start: int, want: int, have: int) -> tuple[int, int, int]:
    low, end = min(max(start, 0), have), min(start + want, have)
    return low, max(end - low, 0), low - start if end > low else 0


def _differ(e: FunctionEmitter, count: Sequence[Value], shape: Sequence[int]) -> Value | None:
    """Return whether extents are not those of a whole tile, None where they surely are."""
    partly: Value | None = None
    for extent, most in zip(count, shape, strict=True):
        if static(extent) != most:
            less = e.b.compare("icmp ne", extent, i64(most))
            partly = less if partly is None else e.b.op("or", partly, less)
    return partly


def _row(tensor: Tensor) -> Tensor:
    """Return a tensor of one axis as the only row of another."""
    shape, valid = (i64(1), *tensor.shape), (i64(1), *tensor.valid)
    return Tensor(tensor.pointer, shape, (i64(0), *tensor.strides), valid, tensor.dtype, tensor.root)


def _copy(
    e: FunctionEmitter,
    tensor: Tensor,
    first: tuple[Value, ...],
    count: tuple[Value, ...],
    tile: Tile,
    place: tuple[Value, ...],
) -> None:
    """Emit a copy of a window of a tensor to its place in a tile, row by row."""
    assert tile.place is not None
    shape, strides = tile.type.shape, tuple(i64(stride) for stride in tile.place.strides)
    if shape[-1] == 1:  # one element per row is there or not: then the row is not
        if len(shape) == 1:
            shape, strides, first, place = (1, 1), (i64(0), *strides), (i64(0), *first), (i64(0), *place)
            count, tensor = (i64(1), *count), _row(tensor)
        some = e.b.compare("icmp sgt", count[-1], i64(0))
        count = (e.b.select(some, count[0], i64(0)), *count[1:-1], i64(1))
    whole = tuple(i64(extent) for extent in shape)
    target = Tensor(tile.place.pointer, whole, strides, whole, tensor.dtype, object())
    known = tuple(most if static(n) == most else None for n, most in zip(count, shape, strict=True))
    source = Tile(TileType(shape, tensor.dtype, known), count, node=LoadNode(tensor=tensor, offsets=first))
    e.run(Group(source.rows, [source], [StoreSink(source, tensor=target, offsets=place)]))
