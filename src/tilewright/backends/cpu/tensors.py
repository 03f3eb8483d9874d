"""Tensor ops: buffers, views and single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.backends.cpu.emit import FunctionEmitter, lowers
from tilewright.backends.cpu.llvm import I1, Value, i64
from tilewright.backends.cpu.tiles import write
from tilewright.backends.cpu.traced import Lanes, converted, from_memory, memory_type, to_memory
from tilewright.backends.cpu.values import Scalar, Tensor, Tile
from tilewright.core.expr import Call
from tilewright.core.types import ScalarType, TensorType
from tilewright.dtypes import INDEX, DataType
from tilewright.errors import UnsupportedFeatureError

Bound = dict[str, Any]


@lowers("tile.get_block_idx")
def _block_index(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.block_index, INDEX)


@lowers("tile.get_block_num")
def _block_count(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.block_count, INDEX)


@lowers("tile.get_subblock_idx", "system.task_dummy", "system.task_invalid")
def _zero(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    assert isinstance(call.type, ScalarType)
    return Scalar(i64(0), call.type.dtype)


@lowers("system.available_cluster_count", "system.available_aiv_count")
def _one(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(i64(1), INDEX)


@lowers("system.bar_v", "system.bar_m", "system.bar_all", "system.fence")
def _nothing(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    return ()


@lowers("tensor.dim")
def _dim(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(bound["tensor"].shape[bound["axis"]], INDEX)


@lowers("tensor.create")
def _create(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    shape, dtype = e.indices(bound["shape"]), bound["dtype"]
    if bound["init_value"] is not None:
        raise UnsupportedFeatureError("create_tensor with init_value has no native code yet", spans=[call.span])
    return new_tensor(e, shape, dtype)


def new_tensor(e: FunctionEmitter, shape: Sequence[Value], dtype: DataType) -> Tensor:
    """Emit a new buffer that lives until the program's caller has read its results."""
    strides: list[Value] = []
    count: Value = i64(1)
    for extent in reversed(shape):
        strides.insert(0, count)
        count = extent if count.ref == "1" else e.b.op("mul", count, extent)
    pointer = e.program.allocate(e, e.b.op("mul", count, i64(dtype.get_byte())))
    return Tensor(pointer, tuple(shape), tuple(strides), tuple(shape), dtype, object())


@lowers("tensor.slice")
def _slice(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source: Tensor = bound["x"]
    assert isinstance(call.type, TensorType)
    starts, shape = e.indices(bound["offset"]), e.indices(bound["shape"])
    fits: Value = Value(I1, "true")
    for start, size, extent in zip(starts, shape, source.shape, strict=True):
        inside = e.b.op("and", e.b.compare("icmp sge", start, i64(0)), e.b.compare("icmp sge", size, i64(0)))
        end = e.b.compare("icmp sle", e.b.op("add", start, size), extent)
        fits = e.b.op("and", fits, e.b.op("and", inside, end))
    if bound["clamp"] or bound["valid_shape"] is not None:
        raise UnsupportedFeatureError("slice with clamp or valid_shape has no native code yet", spans=[call.span])
    e.fail(e.b.op("xor", fits, Value(I1, "true")), "a slice does not fit its tensor", call)
    safe = tuple(e.b.select(fits, size, i64(0)) for size in shape)
    pointer = moved(e, source, tuple(e.b.select(fits, start, i64(0)) for start in starts))
    dropped = {axis % len(shape) for axis in bound["drop_dims"] or ()}
    kept = [axis for axis in range(len(shape)) if axis not in dropped]
    extents = tuple(safe[a] for a in kept)
    return Tensor(pointer, extents, tuple(source.strides[a] for a in kept), extents, source.dtype, source.root)


def moved(e: FunctionEmitter, tensor: Tensor, indices: Sequence[Value]) -> Value:
    """Return the address of one element."""
    offset: Value = i64(0)
    for index, stride in zip(indices, tensor.strides, strict=True):
        offset = e.b.op("add", offset, e.b.op("mul", index, stride))
    return e.b.offset(tensor.pointer, offset, memory_type(tensor.dtype))


@lowers("tensor.transpose")
def _transpose(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source: Tensor = bound["x"]

    def swapped(values: tuple[Value, ...]) -> tuple[Value, ...]:
        turned = list(values)
        a, b = bound["axis1"], bound["axis2"]
        turned[a], turned[b] = turned[b], turned[a]
        return tuple(turned)

    return Tensor(
        source.pointer, swapped(source.shape), swapped(source.strides), swapped(source.valid), source.dtype, source.root
    )


@lowers("tensor.reshape")
def _reshape(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source: Tensor = bound["x"]
    shape = e.indices(bound["shape"])
    strides: list[Value] = []
    count: Value = i64(1)
    for extent in reversed(shape):
        strides.insert(0, count)
        count = e.b.op("mul", count, extent)
    expected: Value = i64(1)
    for extent, stride in zip(reversed(source.shape), reversed(source.strides), strict=True):
        strided = e.b.compare("icmp ne", stride, expected)
        several = e.b.compare("icmp sgt", extent, i64(1))
        e.fail(e.b.op("and", strided, several), "this view is strided: its elements cannot be reshaped in place", call)
        expected = e.b.op("mul", expected, extent)
    return Tensor(source.pointer, shape, tuple(strides), shape, source.dtype, source.root)


@lowers("tensor.assemble")
def _assemble(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    if not isinstance(bound["source"], Tile):
        raise UnsupportedFeatureError("assembling a tensor into a tensor has no native code yet", spans=[call.span])
    write(e, call, bound["source"], bound["target"], bound["offset"], bound["atomic"])
    return bound["target"]


@lowers("tensor.read")
def _read(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    e.flush()
    tensor: Tensor = bound["x"]
    pointer = element_address(e, call, tensor, bound["indices"])
    lane = from_memory(e.b, e.b.load(memory_type(tensor.dtype), pointer, tensor.dtype.get_byte()), tensor.dtype)
    return Scalar(lane.value, tensor.dtype)


@lowers("tensor.write")
def _write(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    e.flush()
    tensor: Tensor = bound["x"]
    pointer = element_address(e, call, tensor, bound["indices"])
    given: Scalar = bound["value"]
    lane = converted(Lanes(e.b, given.value, given.dtype), tensor.dtype)
    e.b.store(to_memory(lane), pointer, tensor.dtype.get_byte())
    return tensor


def element_address(e: FunctionEmitter, call: Call, tensor: Tensor, indices: Sequence[Scalar]) -> Value:
    """Return the address of one element; an index outside the tensor is an error and means element 0."""
    safe: list[Value] = []
    for index, extent in zip(e.indices(indices), tensor.shape, strict=True):
        inside = e.b.compare("icmp ult", index, extent)
        e.fail(e.b.op("xor", inside, Value(I1, "true")), "an index lies outside its tensor", call)
        safe.append(e.b.select(inside, index, i64(0)))
    return moved(e, tensor, safe)
