"""Tiles: ops that make each element from the same element of their operands, repeated where one has fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element, cast
from tilewright.backends.cuda.ttir.elements import Elements, computed, literal
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import CAST, Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import Text, Value
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tile, computes, element_of, padded, working
from tilewright.core.expr import Call
from tilewright.core.types import ScalarType, TileType
from tilewright.dtypes import BF16, BOOL, FP16, DataType
from tilewright.ops.convert import round_mode


def tile_type(call: Call) -> TileType:
    """Return the type of a tile that a call makes."""
    assert isinstance(call.type, TileType)
    return call.type


@recipe("tile:elementwise", "tile:mapped")
def _elementwise(k: Kernel, call: Call, bound: Bound) -> Tile:
    spec, type_ = call.op.spec, tile_type(call)
    given = [bound[name] for name in spec.data if bound[name] is not None]
    if not spec.chained:
        return mapped(k, call, type_, given)
    result = mapped(k, call, type_, given[:2])
    for operand in given[2:]:
        result = mapped(k, call, type_, [result, operand])
    return result


def mapped(k: Kernel, call: Call, type_: TileType, given: Sequence[Tile | Scalar]) -> Tile:
    """Return what the NumPy meaning of a call's op gives for operands, which are converted as it says first."""
    spec, is_rough = call.op.spec, type_.dtype in (FP16, BF16) or call in k.facts.rough
    own = [each.type.dtype if isinstance(each, Tile) else ScalarType(each.dtype) for each in given]
    types = spec.element_types(type_.dtype, own)
    for dtype in (type_.dtype, *types):
        arithmetic(k, dtype)
    valid = broadcast_valid(type_, given)
    is_summed = call in k.facts.summed and not k.facts.factors and tuple(valid) == padded(type_.shape)
    operands = [
        replace(_repeated(k, each, replace(type_, dtype=dtype), type_.dtype), is_rough=is_rough, is_summed=is_summed)
        for each, dtype in zip(given, types, strict=True)
    ]
    assert spec.reference is not None
    result: Elements = spec.reference(*operands)
    value = as_element(k.t, result.value, result.element, type_.dtype) if type_.dtype.is_float() else result.value
    return k.tile(value, type_, valid)


def _repeated(k: Kernel, given: Tile | Scalar, type_: TileType, result: DataType) -> Elements:
    """Return an operand as its elements are computed with: in the shape of what they are computed for."""
    found = computed(k.t, operand(k, given, type_), type_.dtype)
    if isinstance(given, Scalar) or not result.is_float() or padded(given.type.shape) == padded(type_.shape):
        return found
    few = of_rank(k, as_element(k.t, given.value, given.type.dtype, type_.dtype), len(type_.shape))
    return replace(found, narrow=computed(k.t, few, type_.dtype).value)


def arithmetic(k: Kernel, dtype: DataType) -> DataType:
    """Return an element type; UnsupportedFeatureError where there is no arithmetic on it."""
    if not computes(dtype):
        raise refused(f"arithmetic on {dtype} elements", k.t.span, CAST)
    return dtype


def operand(k: Kernel, given: Tile | Scalar, type_: TileType) -> Value:
    """Return an operand in the shape and the element type of a result."""
    shape = padded(type_.shape)
    if isinstance(given, Scalar):
        return k.t.splat(as_element(k.t, *_held(given), type_.dtype), shape)
    return spread_to(k, as_element(k.t, given.value, given.type.dtype, type_.dtype), shape)


def spread_to(k: Kernel, value: Value, shape: Sequence[int]) -> Value:
    """Return elements repeated along axes that they have one of, or that come before theirs."""
    return extents.spread(k.t, of_rank(k, value, len(shape)), shape)


def _held(scalar: Scalar) -> tuple[Value, DataType]:
    """Return a number and what it is held as: floats as fp32 or fp64."""
    return scalar.value, working(scalar.dtype)


def of_rank(k: Kernel, value: Value, rank: int) -> Value:
    """Return elements with axes of one in front."""
    for _ in range(rank - len(value.shape)):
        value = k.t.shaped("tt.expand_dims", value, (1, *value.shape), " {axis = 0 : i32}")
    return value


def broadcast_valid(type_: TileType, given: Sequence[Tile | Scalar]) -> list[Extent]:
    """Return what is valid of a broadcast, which the first operand that spans an axis decides."""
    tiles = [each for each in given if isinstance(each, Tile)]
    rank = len(type_.shape)
    found: list[Extent] = []
    for axis in range(rank):
        own = [(tile, axis - rank + len(tile.type.shape)) for tile in tiles]
        there = [(tile, place) for tile, place in own if place >= 0]
        spanning = [tile.valid[place] for tile, place in there if tile.type.shape[place] != 1]
        found.append(next(iter(spanning or [tile.valid[place] for tile, place in there])))
    return found


@recipe("tile.expands")
def _expands(k: Kernel, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    return k.tile(operand(k, bound["scalar"], type_), type_, bound["target"].valid)


@recipe("tile.create")
def _create(k: Kernel, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    like = Value("", element_of(type_.dtype), padded(type_.shape))
    return k.tile(zeros(k, like), type_, type_.shape)


def zeros(k: Kernel, like: Value) -> Value:
    """Return zero in every element of a value's shape and type."""
    if like.element in ("f16", "bf16"):
        return k.t.constant("0.000000e+00", like.element, like.shape)
    return literal(k.t, 0, like)


def bits_of(t: Text, value: Value) -> Value:
    """Return elements as integers of their bits; conditions as bytes."""
    if value.element == "i1":
        return t.convert("arith.extui", value, "i8")
    return t.bits(value, f"i{value.element.strip('bfi')}")


def as_bits(t: Text, value: Value, element: str) -> Value:
    """Return elements of a type from integers of their bits."""
    return t.compare("cmpi ne", value, literal(t, 0, value)) if element == "i1" else t.bits(value, element)


def in_memory(k: Kernel, value: Value, dtype: DataType) -> Value:
    """Return elements as they lie in memory."""
    return k.t.convert("arith.extui", value, "i8") if dtype == BOOL else value


@recipe("tile.cast")
def _cast(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    value = cast(k.t, source.value, source.type.dtype, type_.dtype, round_mode(bound["mode"]))
    return k.tile(value, type_, source.valid)


@recipe("tile.move")
def _move(k: Kernel, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["tile"]
    return k.tile(source.value, tile_type(call), source.valid, source.is_zero_outside)
