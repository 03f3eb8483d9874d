"""Permuted loads: exponents of scaled products put in order, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.copies import element_at, rows_of
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, Tile
from tilewright.core.enums import TensorLayout
from tilewright.core.types import TileType
from tilewright.native.llvm import I8, Value, i64


def permuted_load(
    e: FunctionEmitter,
    type_: TileType,
    tensor: Tensor,
    layout: TensorLayout,
    starts: Sequence[Value],
    valid: tuple[Value, ...],
) -> Tile:
    """Emit a tile with the elements of a tensor from some indices on, which lie in the order of a layout."""
    e.flush()
    result, b = e.fresh(type_, valid), e.b
    assert result.place is not None
    with rows_of(e, valid) as indices:
        row, column = (b.op("add", start, index) for start, index in zip(starts, indices, strict=True))
        across, along, extent = (row, column, tensor.shape[1])
        if layout is TensorLayout.MX_B_NN:
            across, along, extent = (column, row, tensor.shape[0])
        flat = _flat(e, across, along, extent)
        at = [b.op("udiv", flat, tensor.shape[1]), b.op("urem", flat, tensor.shape[1])]
        steps = [b.op("mul", index, stride) for index, stride in zip(at, tensor.strides, strict=True)]
        source = b.offset(tensor.pointer, b.op("add", *steps), I8)
        b.store(b.load(I8, source, 1), element_at(e, type_.dtype, result.place, indices), 1)
    return result


def _flat(e: FunctionEmitter, across: Value, along: Value, extent: Value) -> Value:
    """Return which element of memory an exponent is: two along the inner axis of 16 across it lie together."""
    b = e.b
    block = b.op("mul", b.op("udiv", across, i64(16)), b.op("udiv", extent, i64(2)))
    pair = b.op("add", block, b.op("udiv", along, i64(2)))
    place = b.op("add", b.op("mul", pair, i64(16)), b.op("urem", across, i64(16)))
    return b.op("add", b.op("mul", place, i64(2)), b.op("urem", along, i64(2)))
