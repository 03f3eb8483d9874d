"""Masks: comparisons of tiles, the bits that they are packed to, and what is chosen by either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.elements import Elements, computed
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.reduce import fold
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import broadcast_valid, operand, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Mask, Scalar, Tile, padded
from tilewright.core.enums import CmpType
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL, UINT32
from tilewright.ops.masks import compared_in

BYTE = 8

_COMPARISONS = {
    CmpType.EQ: "equal", CmpType.NE: "not_equal", CmpType.LT: "less", CmpType.LE: "less_equal",
    CmpType.GT: "greater", CmpType.GE: "greater_equal",
}  # fmt: skip


@recipe("tile.cmp")
def _cmp(k: Kernel, call: Call, bound: Bound) -> Mask:
    """Write a comparison; its conditions are packed to bits where those are looked at."""
    lhs, rhs = bound["lhs"], bound["rhs"]
    own = lhs.type.dtype
    types = compared_in(own, rhs.type.dtype if isinstance(rhs, Tile) else own)
    shapes = [each.type.shape for each in (lhs, rhs) if isinstance(each, Tile)]
    shape = tuple(max(extents) for extents in zip(*shapes, strict=True))
    type_ = TileType(shape, own, shape)
    pairs = zip((lhs, rhs), types, strict=True)
    a, b = (computed(k.t, operand(k, each, replace(type_, dtype=dtype)), dtype) for each, dtype in pairs)
    result = a.ufunc(_COMPARISONS[CmpType(bound["cmp_type"])], (a, b))
    valid = broadcast_valid(type_, [lhs, rhs])
    return Mask(result.value, partial(_packed, k, result.value, tile_type(call), valid))


def _packed(k: Kernel, conditions: Value, type_: TileType, valid: Sequence[Extent]) -> Tile:
    """Return conditions as bits, that of the first column in the least one; behind the last is nothing."""
    t, axis = k.t, len(conditions.shape) - 1
    inside = k.inside(conditions.shape, valid)
    flags = conditions if inside is None else t.simple("arith.andi", conditions, inside)
    count = max(conditions.shape[axis], BYTE)
    words = t.convert("arith.extui", stretch(k.t, flags, axis, 0, count), I32)
    if count != conditions.shape[axis]:
        numbers = extents.positions(t, words.shape, axis)
        there = t.compare("cmpi slt", numbers, t.integer(conditions.shape[axis], I64, numbers.shape))
        words = t.select(extents.spread(t, there, words.shape), words, t.integer(0, I32, words.shape))
    split = t.shaped("tt.reshape", words, (*words.shape[:-1], count // BYTE, BYTE))
    places = t.convert("arith.trunci", extents.positions(t, split.shape, axis + 1), I32)
    shifted = t.simple("arith.shli", split, extents.spread(t, places, split.shape))
    found = fold(k, Elements(t, shifted, UINT32), axis + 1, "bitwise_or")
    value = stretch(k.t, t.convert("arith.trunci", found, "i8"), axis, 0, padded(type_.shape)[axis])
    return k.tile(value, type_, [*valid[:-1], extents.counted(t, valid[-1], BYTE)])


@recipe("tile.sel")
def _sel(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _selected(k, call, bound["mask"], [bound["lhs"], bound["rhs"]])


@recipe("tile.sels")
def _sels(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _selected(k, call, bound["mask"], [bound["src"], bound["scalar"]])


def _selected(k: Kernel, call: Call, mask: Mask | Tile, given: Sequence[Tile | Scalar]) -> Tile:
    type_ = tile_type(call)
    conditions = mask.value if isinstance(mask, Mask) else _unpacked(k, mask, padded(type_.shape))
    for axis, count in enumerate(padded(type_.shape)):
        conditions = stretch(k.t, conditions, axis, 0, count)
    then, other = (operand(k, each, type_) for each in given)
    return k.tile(k.t.select(conditions, then, other), type_, broadcast_valid(type_, given))


def _unpacked(k: Kernel, mask: Tile, shape: Sequence[int]) -> Value:
    """Return the bits of words as conditions, of at least so many columns."""
    if mask.type.dtype == BOOL:
        return mask.value
    t, bits, axis = k.t, mask.type.dtype.bits, len(shape) - 1
    words = stretch(k.t, mask.value, axis, 0, max(shape[axis] // bits, 1))
    each = t.shaped("tt.expand_dims", words, (*words.shape, 1), f" {{axis = {axis + 1} : i32}}")
    each = extents.spread(t, each, (*words.shape, bits))
    places = t.convert("arith.trunci", extents.positions(t, each.shape, axis + 1), I32)
    if bits != 32:
        places = t.convert("arith.trunci", places, words.element)
    shifted = t.simple("arith.shrui", each, extents.spread(t, places, each.shape))
    flat = t.shaped("tt.reshape", shifted, (*words.shape[:-1], words.shape[-1] * bits))
    return t.convert("arith.trunci", flat, "i1")
