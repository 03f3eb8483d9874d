"""Addresses: where the elements of a tensor lie."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Tensor, Tile, static
from tilewright.native.llvm import TRUE, Value, i64


def packed_strides(e: FunctionEmitter, shape: Sequence[Value]) -> tuple[tuple[Value, ...], Value]:
    """Return the strides of a packed row-major buffer, and how many elements it has."""
    strides: list[Value] = []
    count: Value = i64(1)
    for extent in reversed(shape):
        strides.insert(0, count)
        count = times(e, count, extent)
    return tuple(strides), count


def times(e: FunctionEmitter, a: Value, b: Value) -> Value:
    """Return a product, computed now where that is possible."""
    known = static(a), static(b)
    if known[0] is not None and known[1] is not None:
        return i64(known[0] * known[1])
    return b if known[0] == 1 else a if known[1] == 1 else e.b.op("mul", a, b)


def moved(e: FunctionEmitter, tensor: Tensor, indices: Sequence[Value]) -> Value:
    """Return the address of one element."""
    offset: Value = i64(0)
    for index, stride in zip(indices, tensor.strides, strict=True):
        if static(index) != 0:
            step = times(e, index, stride)
            offset = step if static(offset) == 0 else e.b.op("add", offset, step)
    return e.b.offset(tensor.pointer, offset, memory_type(tensor.dtype))


def view_of(e: FunctionEmitter, tile: Tile) -> Tensor:
    """Return a tile as the memory it lies in, after emitting what computes it."""
    place = e.stored(tile)
    shape, strides = (tuple(map(i64, numbers)) for numbers in (tile.type.shape, place.strides))
    return Tensor(place.pointer, shape, strides, tile.valid, tile.type.dtype, object())


def is_read_in_place(e: FunctionEmitter, tile: Tile) -> bool:
    """Return whether the plan says that a loaded tile is read where it lies in its tensor."""
    return tile.place is None and isinstance(tile.node, LoadNode) and not e.waits(tile)


def read_of(e: FunctionEmitter, tile: Tile) -> Tensor:
    """Return a tile to be read: in its tensor, if the plan says so, or in the memory it lies in."""
    return origin_of(e, tile) if is_read_in_place(e, tile) else view_of(e, tile)


def origin_of(e: FunctionEmitter, tile: Tile) -> Tensor:
    """Return the part of a tensor that a tile is loaded from."""
    node = tile.node
    assert isinstance(node, LoadNode)
    axes = len(tile.valid)
    pointer, strides = moved(e, node.tensor, node.offsets), node.tensor.strides[-axes:]
    return Tensor(pointer, tuple(map(i64, tile.type.shape)), strides, tile.valid, tile.type.dtype, node.tensor.root)


def is_packed(e: FunctionEmitter, tensor: Tensor) -> Value:
    """Return whether the elements of a tensor lie one after the other along its rows."""
    strides, _ = packed_strides(e, tensor.shape)
    packed = TRUE
    for have, want in zip(tensor.strides, strides, strict=True):
        if have != want:
            same = e.b.compare("icmp eq", have, want)
            packed = same if packed == TRUE else e.b.op("and", packed, same)
    return packed


def counted(e: FunctionEmitter, number: Value, tensor: Tensor, axes: int) -> Value:
    """Return the distance, in elements, of what has a number when the first so many axes are counted through."""
    offset: Value = i64(0)
    for axis in range(axes - 1, -1, -1):
        index = number
        if axis:
            extent = tensor.shape[axis]
            extent = extent if static(extent) else e.b.intrinsic("llvm.umax", extent, i64(1))  # of none, none is taken
            index, number = (e.b.op(name, number, extent) for name in ("urem", "udiv"))
        step = times(e, index, tensor.strides[axis])
        offset = step if static(offset) == 0 else e.b.op("add", offset, step)
    return offset


def product(e: FunctionEmitter, extents: Sequence[Value]) -> Value:
    """Return the product of extents, computed now where that is possible."""
    count: Value = i64(1)
    for extent in extents:
        count = times(e, count, extent)
    return count
