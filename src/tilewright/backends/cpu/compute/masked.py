"""Masked memory: loads and stores of those elements that a mask admits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from tilewright.arrays import np
from tilewright.backends.cpu.compute.copies import tile_type, whole_extents, with_adjacent_rows
from tilewright.backends.cpu.compute.nodes import MaskedNode, mapped
from tilewright.backends.cpu.compute.row_memory import Pass, own_indices
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import StoreSink
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import LoadNode, Scalar, Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.dtypes import DataType
from tilewright.native.llvm import I64, Builder, Value, i64, vector
from tilewright.ops.load import padding
from tilewright.records import record

OUTSIDE = "a mask is True where its tensor has no element"


@record
class Gate:
    """What lets elements of a window of a tensor through: a mask, where there is an element; elsewhere it is False."""

    e: FunctionEmitter
    call: Call
    tensor: Tensor
    offsets: tuple[Value, ...]
    extents: tuple[Value, ...]
    """How far the tensor reaches along each axis."""
    shape: tuple[int, ...]

    def admit(self, mask: Lanes, here: Pass) -> Value:
        """Emit which elements at the current row and columns are read or written; an error is noted for others."""
        b, wanted = self.e.b, mask.value
        if here.mask is not None:
            wanted = b.op("and", wanted, here.mask)
        if not self.e.checked:
            return wanted
        rows, column = self._unsure(here)
        if not rows and column is None:
            return wanted
        if column is None or here.count == 1:
            return self._kept(here, wanted, rows, column)
        fits = reduce(lambda x, y: b.op("and", x, y), [*rows, _whole(b, here, column)])
        return b.either(fits, lambda: wanted, lambda: self._kept(here, wanted, rows, column))

    def _kept(self, here: Pass, wanted: Value, rows: list[Value], column: tuple[Value, Value] | None) -> Value:
        """Emit which of the elements that are wanted lie in the tensor; an error is noted for others."""
        b = self.e.b
        inside = [b.splat(reduce(lambda x, y: b.op("and", x, y), rows), here.count)] if rows else []
        if column is not None:
            inside.append(b.compare("icmp ult", _columns(b, here, column[0]), b.splat(column[1], here.count)))
        kept = reduce(lambda x, y: b.op("and", x, y), inside, wanted)
        self.e.fail(_any(b, b.op("xor", wanted, kept)), OUTSIDE, self.call)
        return kept

    def _unsure(self, here: Pass) -> tuple[list[Value], tuple[Value, Value] | None]:
        """Return whether the current row lies in the tensor, and where a row begins and ends if it may reach past that.

        Nothing is said of what is certain.
        """
        b, rank = self.e.b, len(self.offsets)
        places, sizes = own_indices(here.row, self.shape, rank), ((1,) * rank + self.shape)[-rank:]
        axes = zip(places, self.offsets, self.extents, sizes, strict=True)
        *rows, column = [axis if not _fits(*axis[1:]) else None for axis in axes]
        found = [b.compare("icmp ult", b.op("add", axis[0], axis[1]), axis[2]) for axis in rows if axis is not None]
        return found, None if column is None else (column[1], column[2])


def _whole(b: Builder, here: Pass, column: tuple[Value, Value]) -> Value:
    """Return whether all of the columns being emitted lie along the last axis of a tensor."""
    start, extent = column
    ways = b.intrinsic("llvm.smax", b.op("sub", extent, i64(here.count - 1)), i64(0))
    return b.compare("icmp ult", b.op("add", here.column, start), ways)


def _fits(start: Value, extent: Value, size: int) -> bool:
    first, have = static(start), static(extent)
    return first is not None and have is not None and 0 <= first and first + size <= have


def _columns(b: Builder, here: Pass, start: Value) -> Value:
    """Return where the columns being emitted lie along the last axis of a tensor."""
    first = b.splat(b.op("add", here.column, start), here.count)
    if here.count == 1:
        return first
    return b.op("add", first, Value(vector(I64, here.count), f"<{', '.join(f'i64 {i}' for i in range(here.count))}>"))


def _any(b: Builder, lanes: Value) -> Value:
    count = int(lanes.type.partition(" x ")[0][1:]) if lanes.type.startswith("<") else 1
    if count == 1:
        return lanes
    return b.compare("icmp ne", b.convert("bitcast", lanes, f"i{count}"), Value(f"i{count}", "0"))


def masked_load(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Record a load of the elements that a mask admits, a number in place of the others."""
    tensor, type_, starts = bound["tensor"], tile_type(call), e.indices(bound["offsets"])
    e.look(call, "mask", bound["mask"], bound["mask"].valid)
    mask, whole = with_adjacent_rows(e, bound["mask"]), whole_extents(type_)
    source = Tile(type_, whole, node=LoadNode(tensor=tensor, offsets=starts))
    gate = Gate(e, call, tensor, starts, tensor.valid, type_.shape)
    other = _bits(padding(0 if bound["pad"] is None else bound["pad"], type_.dtype), type_.dtype)
    return e.record(Tile(type_, whole, node=MaskedNode((mask,), source=source, other=other, admit=gate.admit)))


def masked_store(e: FunctionEmitter, call: Call, bound: Bound) -> None:
    """Record a store of the elements that a mask admits."""
    tensor, starts, tile = bound["output_tensor"], e.indices(bound["offsets"]), bound["tile"]
    look_at_met(e, call, "mask", bound["mask"], tile.valid)
    mask, tile = with_adjacent_rows(e, bound["mask"]), with_adjacent_rows(e, tile)
    gate = Gate(e, call, tensor, starts, tensor.shape, tile.type.shape)
    met = mapped(e, tile.type, tile.valid, _first, [tile, mask])  # not before its mask is known
    e.record_store(StoreSink(met, tensor=tensor, offsets=starts, mask=mask, admit=gate.admit), goes_on=True)


def _first(x: Lanes, mask: Lanes) -> Lanes:
    return x


def _bits(number: float, dtype: DataType) -> int:
    """Return a number as it lies in memory."""
    with np.errstate(over="ignore"):
        element: Any = np.asarray(number).astype(dtype.numpy)
    return int.from_bytes(element.tobytes(), "little")


def look_at_met(e: FunctionEmitter, call: Call, name: str, operand: Tile | Scalar, valid: Sequence[Value]) -> None:
    """Check that an operand holds data wherever a broadcast looks at it."""
    if isinstance(operand, Tile):
        own = valid[len(valid) - len(operand.valid) :]
        needed = [i64(1) if n == 1 else v for n, v in zip(operand.type.shape, own, strict=True)]
        empty = [e.b.compare("icmp sle", extent, i64(0)) for extent in valid if static(extent) is None]
        nothing = reduce(lambda x, y: e.b.op("or", x, y), empty) if empty else None
        if not any(static(extent) == 0 for extent in valid):
            e.look(call, name, operand, needed, unless=nothing)
