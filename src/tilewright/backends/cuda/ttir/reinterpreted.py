"""Reinterpreted values: the bytes of tiles and tensors as elements of another type.

Elements of a tile are halved, or put together by two, until they have the right size; the lower half comes first.
"""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.shape import reshaped
from tilewright.backends.cuda.ttir.tensor_views import kept, lie_at, packed_strides
from tilewright.backends.cuda.ttir.text import Text, Value, pointer_to
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tensor, Tile, element_of, memory_element
from tilewright.core.expr import Call
from tilewright.core.types import ShapedType, TensorType, TileType
from tilewright.ops.reinterpret import PACK, RAGGED, STRIDED, adjacent_axis


@recipe("tile.reinterpret_view")
def _tile(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_, t = bound["data"], tile_type(call), k.t
    own: TileType = source.type
    axis, have, want = adjacent_axis(own), own.dtype.get_byte(), type_.dtype.get_byte()
    rank = len(own.shape)
    order = [*range(rank - 2), rank - 1, rank - 2]
    value = t.bits(source.value, f"i{8 * have}")
    if axis == -2:
        value = t.turned(value, order)
    value = t.bits(sized(t, value, 8 * want), element_of(type_.dtype))
    if axis == -2:
        value = t.turned(value, order)
    shape = [*own.shape]
    shape[axis] = shape[axis] * have // want
    valid = _scaled_part(k, call, source.valid, own, type_)
    rows = k.tile(value, TileType(tuple(shape), type_.dtype, tuple(shape)), shape)
    if tuple(shape) != type_.shape:
        return reshaped(k, rows, type_, type_.shape)
    return k.tile(value, type_, valid)


def sized(t: Text, value: Value, bits: int) -> Value:
    """Return integers of so many bits for the bytes of others, along the last axis."""
    have = int(value.element[1:])
    if have == bits:
        return value
    *rows, count = value.shape
    if have > bits:
        element = f"i{have // 2}"
        upper = t.simple("arith.shrui", value, t.integer(have // 2, value.element, value.shape))
        low, high = (t.convert("arith.trunci", each, element) for each in (value, upper))
        return sized(t, t.shaped("tt.reshape", t.joined(low, high), (*rows, 2 * count)), bits)
    low, high = (t.convert("arith.extui", each, f"i{2 * have}") for each in t.split(value))
    upper = t.simple("arith.shli", high, t.integer(have, high.element, high.shape))
    return sized(t, t.simple("arith.ori", low, upper), bits)


def _scaled_part(
    k: Kernel, call: Call, valid: tuple[Extent, ...], source: ShapedType, target: ShapedType
) -> list[Extent]:
    """Return what is valid in elements of another size; what is no whole number of them is an error."""
    scaled, axis = list(valid), adjacent_axis(source)
    scaled[axis], rest = _scaled(k, valid[axis], source, target)
    if rest is not None:
        k.fail(k.t.compare("cmpi ne", rest, k.t.integer(0)), f"{RAGGED}\n{PACK}", call.span)
    return scaled


def _scaled(k: Kernel, count: Extent, source: ShapedType, target: ShapedType) -> tuple[Extent, Value | None]:
    """Return a number of elements in those of another size, and how many are left over where that is not known."""
    have, want = source.dtype.get_byte(), target.dtype.get_byte()
    if have >= want:
        return extents.times(k.t, count, have // want), None
    if isinstance(count, int):
        return count * have // want, None
    ratio = k.t.integer(want // have)
    return k.t.simple("arith.divsi", count, ratio), k.t.simple("arith.remsi", count, ratio)


@recipe("tensor.reinterpret_view")
def _tensor(k: Kernel, call: Call, bound: Bound) -> Tensor:
    """Write a tensor's bytes as other elements; where those do not lie so it is an error, and nothing is valid."""
    source, source_type, type_ = bound["data"], call.args[0].type, call.type
    assert isinstance(source_type, TensorType) and isinstance(type_, TensorType)
    shape = _scaled_part(k, call, source.shape, source_type, type_)
    pointer = k.t.bits(source.pointer, pointer_to(memory_element(type_.dtype)))
    if bound["shape"] is not None and (asked := k.indices(bound["shape"])) != shape:
        fits = lie_at(k, source, packed_strides(k, source.shape))
        view = Tensor(pointer, tuple(asked), packed_strides(k, asked), tuple(asked), type_.dtype, source.root)
        return kept(k, call, fits, view, f"{STRIDED}\n{PACK}")
    axis = adjacent_axis(source_type)
    valid = shape if source.valid == source.shape else _scaled_part(k, call, source.valid, source_type, type_)
    strides, adjacent = list(source.strides), list(source.strides)
    adjacent[axis] = 1
    fits = lie_at(k, source, adjacent)
    for other in range(len(strides)):
        if other != axis % len(strides):
            strides[other], rest = _scaled(k, source.strides[other], source_type, type_)
            if rest is not None:
                whole = k.t.compare("cmpi eq", rest, k.t.integer(0))
                single = k.t.compare("cmpi sle", extents.held(k.t, source.shape[other]), k.t.integer(1))
                either = k.t.simple("arith.ori", whole, single)
                fits = either if fits is None else k.t.simple("arith.andi", fits, either)
    strides[axis] = 1
    view = Tensor(pointer, tuple(shape), tuple(strides), tuple(valid), type_.dtype, source.root)
    return kept(k, call, fits, view, f"{STRIDED}\n{PACK}")
