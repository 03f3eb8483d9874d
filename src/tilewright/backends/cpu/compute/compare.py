"""Comparison: masks of one bit per element, and what is chosen by them.

A mask that only chooses is never packed: the comparisons behind it are kept as a tile of bools, and the choice is
fused with them. One that is used in any other way is packed into memory, eight columns a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tilewright.arrays import np
from tilewright.backends.cpu.compute.convert import as_element
from tilewright.backends.cpu.compute.copies import element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.masked import look_at_met
from tilewright.backends.cpu.compute.tiles import broadcast_valid, recorded
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Place, Scalar, Tile
from tilewright.core.expr import Call
from tilewright.core.region import PADDING, undefined_message
from tilewright.core.types import TileType
from tilewright.core.visitor import variables
from tilewright.dtypes import BOOL, UINT8
from tilewright.native.llvm import I8, Value, i64
from tilewright.ops.masks import compared_in
from tilewright.records import mutable

_TESTS: tuple[Any, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@mutable
class Mask(Tile):
    """A packed mask that is nowhere: only its bools are."""

    bools: Tile = field(kw_only=True)


@lowers("tile.cmp")
def _cmp(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    lhs, rhs = bound["lhs"], bound["rhs"]
    own = lhs.type.dtype
    types = compared_in(own, rhs.type.dtype if isinstance(rhs, Tile) else own)
    test = _TESTS[bound["cmp_type"]]

    def function(a: Lanes, b: Lanes) -> Lanes:
        return test(as_element(a, types[0]), as_element(b, types[1]))

    shape = np.broadcast_shapes(lhs.type.shape, rhs.type.shape if isinstance(rhs, Tile) else ())
    valid = broadcast_valid(shape, [lhs, rhs])
    for name in ("lhs", "rhs"):
        look_at_met(e, call, name, bound[name], valid)
    bools = recorded(e, TileType(shape, BOOL, valid_extents(valid)), valid, function, [lhs, rhs], False)
    if e.step.only_chooses:
        return Mask(tile_type(call), (*valid[:-1], i64(0)), owners=bools.owners, bools=bools)
    return packed_mask(e, call, bools)


def valid_extents(valid: Sequence[Value]) -> tuple[int | None, ...]:
    """Return valid extents as a type has them."""
    return tuple(int(v.ref) if v.ref.isdigit() else None for v in valid)


def packed_mask(e: FunctionEmitter, call: Call, bools: Tile) -> Tile:
    """Emit the packing of bools into bytes; bits past the valid columns are zero."""
    bools.owners = variables(call.args)
    place, width = e.stored(bools), bools.valid[-1]
    count = e.b.op("lshr", e.b.op("add", width, i64(7)), i64(3))
    result = e.fresh(tile_type(call), known_or(tile_type(call), (*bools.rows, count)))
    result.bits = width
    assert result.place is not None
    last = e.b.op("sub", width, i64(1))
    with rows_of(e, bools.rows) as row, e.b.loop(i64(0), result.valid[-1], i64(1)) as at:
        byte = Value(I8, "0")
        for bit in range(8):
            column = e.b.op("add", e.b.op("shl", at, i64(3)), i64(bit))
            near = e.b.intrinsic("llvm.smin", column, last)
            held = e.b.load(I8, element_at(e, BOOL, place, (*row, near)), 1)
            there = e.b.select(e.b.compare("icmp sle", column, last), held, Value(I8, "0"))
            byte = e.b.op("or", byte, e.b.op("shl", there, Value(I8, str(bit))))
        e.b.store(byte, element_at(e, UINT8, result.place, (*row, at)), 1)
    return result


@lowers("tile.sel")
def _sel(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return _chosen(e, call, bound["mask"], bound["lhs"], bound["rhs"])


@lowers("tile.sels")
def _sels(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return _chosen(e, call, bound["mask"], bound["src"], bound["scalar"])


def _chosen(e: FunctionEmitter, call: Call, mask: Tile, taken: Tile, other: Tile | Scalar) -> Tile:
    """Record the choice between the elements of a tile and those of another, or a number."""
    type_ = tile_type(call)
    valid = known_or(type_, broadcast_valid(type_.shape, [taken, other]))

    def function(bit: Lanes, a: Lanes, b: Lanes) -> Lanes:
        return np.where(bit, as_element(a, type_.dtype), as_element(b, type_.dtype))  # pyright: ignore

    bools = mask.bools if isinstance(mask, Mask) else mask
    if bools.type.dtype == BOOL:
        e.look(call, "mask", bools, valid)
    else:
        bools = unpacked(e, call, mask, type_.shape, valid)
    return recorded(e, type_, valid, function, [bools, taken, other], False)


def unpacked(e: FunctionEmitter, call: Call, mask: Tile, shape: tuple[int, ...], valid: tuple[Value, ...]) -> Tile:
    """Emit the unpacking of a mask into bools, as many as are `valid`."""
    e.stored(mask)
    place, size = _bytes_of(with_adjacent_rows(e, mask)), mask.type.dtype.get_byte()
    words = e.b.op("udiv", e.b.op("add", valid[-1], i64(8 * size - 1)), i64(8 * size))
    e.look(call, "mask", mask, (*valid[:-1], words))
    if mask.bits is not None and not e.defined.is_sure(call, "mask"):
        beyond = e.b.compare("icmp sgt", valid[-1], mask.bits)
        e.stop(beyond, f"{undefined_message(call.span)}\n{PADDING}", call)
    result = e.fresh(TileType(shape, BOOL, valid_extents(valid)), valid)
    result.owners = variables(call.args)
    assert result.place is not None
    with rows_of(e, valid[:-1]) as row, e.b.loop(i64(0), valid[-1], i64(1)) as column:
        byte = e.b.load(I8, element_at(e, UINT8, place, (*row, e.b.op("lshr", column, i64(3)))), 1)
        shift = e.b.convert("trunc", e.b.op("and", column, i64(7)), I8)
        bit = e.b.op("and", e.b.op("lshr", byte, shift), Value(I8, "1"))
        e.b.store(bit, element_at(e, BOOL, result.place, (*row, column)), 1)
    return result


def _bytes_of(mask: Tile) -> Place:
    """Return where the bytes of a mask lie: those of a word are in order of their bits."""
    assert mask.place is not None
    size = mask.type.dtype.get_byte()
    return Place(mask.place.pointer, (*(size * stride for stride in mask.place.strides[:-1]), 1))
