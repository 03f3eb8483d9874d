"""Reinterpreted values: the bytes of tiles and tensors as elements of another type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.addresses import packed_strides, times
from tilewright.backends.cpu.compute.copies import known_or, packed, tile_type
from tilewright.backends.cpu.compute.nodes import BytesNode
from tilewright.backends.cpu.compute.views import lying, seen, view
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Place, Tensor, Tile, contiguous, static
from tilewright.backends.cpu.host.tensor_views import guarded
from tilewright.core.expr import Call
from tilewright.core.types import ShapedType, TensorType
from tilewright.dtypes import UINT8, DataType
from tilewright.native.llvm import I1, Value, i64
from tilewright.ops.reinterpret import PACK, RAGGED, STRIDED, adjacent_axis


@lowers("tile.reinterpret_view")
def _tile(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["data"], tile_type(call)
    valid = type_.shape if type_.valid == type_.shape else None
    extents = tuple(map(i64, valid)) if valid else _scaled_part(e, call, source.valid, source.type, type_)
    if e.step.reloads:
        return seen(e, type_, source, _bytes(e, lying(e, source), type_.dtype), extents)
    if e.step.joins:
        return e.record(Tile(type_, known_or(type_, extents), node=BytesNode((source,))))
    source = packed(e, source)
    assert source.place is not None
    return view(type_, source, Place(source.place.pointer, contiguous(type_.shape)), known_or(type_, extents))


def _bytes(e: FunctionEmitter, tensor: Tensor, dtype: DataType) -> Tensor:
    """Return a tensor whose rows are adjacent as bytes, from each element of a type to the next."""
    have, want = tensor.dtype.get_byte(), dtype.get_byte()
    *rows, _ = (times(e, stride, i64(have)) for stride in tensor.strides)
    columns = i64((static(tensor.shape[-1]) or 0) * have // want)
    return replace(tensor, shape=(*tensor.shape[:-1], columns), strides=(*rows, i64(want)), dtype=UINT8)


def _scaled_part(
    e: FunctionEmitter, call: Call, valid: Sequence[Value], source: ShapedType, target: ShapedType
) -> tuple[Value, ...]:
    """Return what is valid in elements of another size; what is no whole number of them is an error."""
    scaled, axis = list(valid), adjacent_axis(source)
    scaled[axis], rest = _scaled(e, valid[axis], source, target)
    if rest is not None:
        e.fail(e.b.compare("icmp ne", rest, i64(0)), f"{RAGGED}\n{PACK}", call)
    return tuple(scaled)


def _scaled(e: FunctionEmitter, count: Value, source: ShapedType, target: ShapedType) -> tuple[Value, Value | None]:
    """Return a number of elements in those of another size, and how many are left over where that is not known."""
    have, want = source.dtype.get_byte(), target.dtype.get_byte()
    if have >= want or static(count) is not None:
        return (i64((static(count) or 0) * have // want) if have < want else times(e, count, i64(have // want))), None
    ratio = i64(want // have)
    return e.b.op("sdiv", count, ratio), e.b.op("srem", count, ratio)


@lowers("tensor.reinterpret_view")
def _tensor(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Return a tensor's bytes as other elements; where those do not lie so it is an error, and replaced."""
    source, source_type, type_ = bound["data"], call.args[0].type, call.type
    assert isinstance(source_type, TensorType) and isinstance(type_, TensorType)
    shape = _scaled_part(e, call, source.shape, source_type, type_)
    if bound["shape"] is not None and (asked := e.indices(bound["shape"])) != shape:
        strides = packed_strides(e, source.shape)[0]
        fits = _lie_at(e, source, strides)
        view = Tensor(source.pointer, asked, packed_strides(e, asked)[0], asked, type_.dtype, source.root)
        return _checked(e, call, fits, view, type_)
    axis = adjacent_axis(source_type)
    valid = shape if source.valid == source.shape else _scaled_part(e, call, source.valid, source_type, type_)
    strides, fits = list(source.strides), _adjacent(e, source, axis)
    for other in range(len(strides)):
        if other != axis % len(strides):
            strides[other], rest = _scaled(e, source.strides[other], source_type, type_)
            if rest is not None:
                whole = e.b.compare("icmp eq", rest, i64(0))
                single = e.b.compare("icmp sle", source.shape[other], i64(1))
                fits = e.b.op("and", fits, e.b.op("or", whole, single))
    strides[axis] = i64(1)
    view = Tensor(source.pointer, shape, tuple(strides), valid, type_.dtype, source.root)
    return _checked(e, call, fits, view, type_)


def _checked(e: FunctionEmitter, call: Call, fits: Value, view: Tensor, type_: TensorType) -> Tensor:
    if fits.ref == "true" or not e.checked:
        return view
    e.fail(e.negated(fits), f"{STRIDED}\n{PACK}", call)
    return guarded(e, fits, view, type_)


def _lie_at(e: FunctionEmitter, tensor: Tensor, strides: Sequence[Value]) -> Value:
    """Return whether the elements of a tensor are so far apart, along axes that have more than one."""
    fits = Value(I1, "true")
    for extent, have, want in zip(tensor.shape, tensor.strides, strides, strict=True):
        if have != want and static(extent) != 1:
            same = e.b.op("or", e.b.compare("icmp eq", have, want), e.b.compare("icmp sle", extent, i64(1)))
            fits = e.b.op("and", fits, same)
    return fits


def _adjacent(e: FunctionEmitter, tensor: Tensor, axis: int) -> Value:
    """Return whether neighbours along an axis are adjacent."""
    wanted = list(tensor.strides)
    wanted[axis] = i64(1)
    return _lie_at(e, tensor, wanted)
