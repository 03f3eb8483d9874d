"""Slots: where values wait that a loop carries or a branch yields.

Numbers wait in words of the frame, which are registers once optimised; tiles and arrays in parts of the arena. Reading
a slot gives the value as it is now; filling it copies.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Protocol

from tilewright.backends.cpu.compute.convert import as_scalar
from tilewright.backends.cpu.compute.copies import copy
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import operands_of
from tilewright.backends.cpu.emit.llvm_types import compute_type, literal
from tilewright.backends.cpu.emit.undefined import box, shrinks
from tilewright.backends.cpu.emit.values import Array, Binding, Place, Scalar, Tensor, Tile
from tilewright.backends.cpu.host.arrays import array_bytes, clear_array, copy_array
from tilewright.backends.cpu.host.tensors import new_tensor
from tilewright.core.expr import Var
from tilewright.core.types import ArrayType, Extent, ScalarType, TensorType, TileType, TupleType, Type
from tilewright.dtypes import DataType
from tilewright.native.llvm import FALSE, I1, I64, PTR, TRUE, Value, i64
from tilewright.passes.accumulators import SHRINKS
from tilewright.records import mutable, record


class Slot(Protocol):
    """Where a value of one type waits."""

    def fill(self, e: FunctionEmitter, value: Any) -> None:
        """Emit the copying of a value into the slot."""
        ...

    def clear(self, e: FunctionEmitter) -> None:
        """Emit the making of something harmless in a slot that has no value yet."""
        ...

    def read(self, e: FunctionEmitter) -> Binding:
        """Return what is in the slot at this point."""
        ...

    def settle(self, e: FunctionEmitter) -> None:
        """Hand what the slot holds in the arena to the current block."""
        ...


def slot_of(e: FunctionEmitter, type_: Type) -> Slot:
    """Return a new slot for values of a type."""
    match type_:
        case ScalarType():
            return ScalarSlot(e.b.slot(compute_type(type_.dtype)), type_.dtype)
        case TensorType():
            return TensorSlot.of(e, type_)
        case TileType():
            return TileSlot(type_, *e.reserve(type_), [Word.of(e, extent) for extent in type_.valid])
        case ArrayType():
            part = e.arena.take(array_bytes(type_))
            return ArraySlot(Array(type_, e.address(part[0])), part)
        case TupleType():
            return TupleSlot([slot_of(e, element) for element in type_.elements])


@record
class Word:
    """An extent or stride in a slot: a constant where it is known."""

    known: Value | None
    cell: Value | None = None

    @staticmethod
    def of(e: FunctionEmitter, extent: Extent) -> Word:
        """Return a word for an extent."""
        return Word(i64(extent)) if isinstance(extent, int) else Word(None, e.b.slot(I64))

    def fill(self, e: FunctionEmitter, value: Value) -> None:
        """Emit a store of what is not known."""
        if self.cell is not None:
            e.b.store(value, self.cell, 8)

    def read(self, e: FunctionEmitter) -> Value:
        """Return the number."""
        if self.known is not None:
            return self.known
        assert self.cell is not None
        return e.b.load(I64, self.cell, 8)


@record
class ScalarSlot:
    """A number."""

    cell: Value
    dtype: DataType

    def fill(self, e: FunctionEmitter, value: Scalar) -> None:
        """Emit a store."""
        e.b.store(as_scalar(Lanes(e.b, value.value, value.dtype), self.dtype), self.cell, 1)

    def clear(self, e: FunctionEmitter) -> None:
        """Emit a store of zero."""
        e.b.store(literal(self.dtype, 0, 1), self.cell, 1)

    def read(self, e: FunctionEmitter) -> Scalar:
        """Return the number."""
        return Scalar(e.b.load(compute_type(self.dtype), self.cell, 1), self.dtype)

    def settle(self, e: FunctionEmitter) -> None:
        """A number holds nothing in the arena."""


@record
class TensorSlot:
    """A view of memory: its address, and what is not known of its shape."""

    type: TensorType
    pointer: Value
    shape: list[Word]
    strides: list[Word]
    valid: list[Word]

    @staticmethod
    def of(e: FunctionEmitter, type_: TensorType) -> TensorSlot:
        """Return a slot for tensors of a type; only where views are turned is the last stride not one."""
        strides: list[Extent] = [None] * len(type_.shape)
        if strides and not e.has_turned_views:
            strides[-1] = 1
        words = ([Word.of(e, extent) for extent in extents] for extents in (type_.shape, strides, type_.valid))
        return TensorSlot(type_, e.b.slot(PTR), *words)

    def fill(self, e: FunctionEmitter, value: Tensor) -> None:
        """Emit stores of the address and of what is not known."""
        e.b.store(value.pointer, self.pointer, 8)
        for words, values in ((self.shape, value.shape), (self.strides, value.strides), (self.valid, value.valid)):
            for word, number in zip(words, values, strict=True):
                word.fill(e, number)

    def clear(self, e: FunctionEmitter) -> None:
        """Emit a new buffer: what nobody should read has to be somewhere."""
        shape = [i64(extent) if isinstance(extent, int) else i64(0) for extent in self.type.shape]
        self.fill(e, new_tensor(e, shape, self.type.dtype, clear=True))

    def read(self, e: FunctionEmitter) -> Tensor:
        """Return the view."""
        pointer = e.b.load(PTR, self.pointer, 8)
        shape, strides, valid = (
            tuple(word.read(e) for word in words) for words in (self.shape, self.strides, self.valid)
        )
        return Tensor(pointer, shape, strides, valid, self.type.dtype, self)

    def settle(self, e: FunctionEmitter) -> None:
        """A view holds nothing in the arena."""


@mutable
class TileSlot:
    """A tile, packed."""

    type: TileType
    place: Place
    part: Part | None
    """None where the slot of the loop around lends its place."""
    valid: list[Word]
    owners: list[Var] = field(default_factory=list[Var])
    defined: list[Word] | None = None
    written: Word | None = None
    is_scattered: Value | None = None
    is_made: Value | None = None
    """Whether it holds one number everywhere, where an accumulator may hold it."""
    var: Var | None = None
    """The accumulator that lies here, if one does."""
    borrowers: list[TileSlot] = field(default_factory=list["TileSlot"])
    """Slots of loops inside that have the same place."""

    def holds(self, tile: Tile) -> bool:
        """Return whether a tile lies here."""
        return self.owners is tile.owners or any(slot.holds(tile) for slot in self.borrowers)

    def has_room(self, type_: TileType) -> bool:
        """Return whether a tile of a type may lie here."""
        return (self.type.shape, self.type.dtype) == (type_.shape, type_.dtype)

    def follow(self, e: FunctionEmitter, var: Var) -> None:
        """Keep also what has to be known of the tile that a variable stands for."""
        if var in e.followed:
            self.defined = [Word.of(e, None) for _ in self.valid]
            self.written, self.is_scattered = Word.of(e, None), e.b.slot(I1)
        if e.accumulators:
            self.var, self.is_made = var if var in e.accumulators else None, e.b.slot(I1)

    def fill(self, e: FunctionEmitter, value: Tile) -> None:
        """Emit a copy of the valid part; a tile that lies here already stays."""
        if value.place != self.place:
            copy(e, value, Tile(self.type, value.valid, self.place))
        for word, extent in zip(self.valid, value.valid, strict=True):
            word.fill(e, extent)
        for word, extent, valid in zip(self.defined or (), box(value), value.valid, strict=False):
            word.fill(e, e.b.intrinsic("llvm.smin", extent, valid))
        if self.written is not None and self.is_scattered is not None:
            self.written.fill(e, value.written or i64(0))
            e.b.store(value.is_scattered or FALSE, self.is_scattered, 1)
        if self.is_made is not None:
            e.b.store(value.is_made or FALSE, self.is_made, 1)

    def keep(self, e: FunctionEmitter, value: Tile) -> None:
        """Emit the end of the function where an accumulator would lose what it holds beyond a new valid part."""
        if self.var is None or self.is_made is None:
            return
        held = [word.read(e) for word in self.valid]
        less = shrinks(e.b, held, e.b.load(I1, self.is_made, 1), value)
        if less is not None:
            e.stop(less, SHRINKS.format(name=self.var.name_hint), e.accumulators[self.var])

    def is_updated(self, e: FunctionEmitter, value: Tile) -> bool:
        """Return whether a tile that waits may be computed here, each element from the one whose place it takes."""
        if not self.has_room(value.type) or not e.waits(value) or value in e.floating or e.readers(value) != 1:
            return False
        held = [operand for operand in operands_of(value) if self.holds(operand)]
        is_there = bool(held) and all(o.place == self.place and o.type.shape == self.type.shape for o in held)
        is_alone = is_there and e.readers(held[0]) == 0 and not e.read_by(lambda tile: tile is value)
        return is_alone and all(reader is value for reader in e.read_by(self.holds))

    def clear(self, e: FunctionEmitter) -> None:
        """Emit valid extents of zero where they are not known."""
        for word in (*self.valid, *(self.defined or ())):
            word.fill(e, i64(0))
        if self.is_made is not None:
            e.b.store(TRUE, self.is_made, 1)

    def read(self, e: FunctionEmitter) -> Tile:
        """Return the tile; all that are read from one slot share its owners."""
        tile = Tile(self.type, tuple(word.read(e) for word in self.valid), self.place, owners=self.owners)
        if self.defined is not None and self.written is not None and self.is_scattered is not None:
            tile.defined, tile.written = tuple(word.read(e) for word in self.defined), self.written.read(e)
            tile.is_scattered = e.b.load(I1, self.is_scattered, 1)
        if self.is_made is not None:
            tile.is_made = e.b.load(I1, self.is_made, 1)
        return tile

    def settle(self, e: FunctionEmitter) -> None:
        """Let the current block own the place, if nobody else does."""
        if self.part is not None:
            e.own(Tile(self.type, (), self.place, owners=self.owners), self.part)


@record
class ArraySlot:
    """An array."""

    array: Array
    part: Part

    def fill(self, e: FunctionEmitter, value: Array) -> None:
        """Emit a copy."""
        if value.pointer != self.array.pointer:
            copy_array(e, value, self.array)

    def clear(self, e: FunctionEmitter) -> None:
        """Emit zeros."""
        clear_array(e, self.array)

    def read(self, e: FunctionEmitter) -> Array:
        """Return the array; all that are read from one slot share its owners."""
        return self.array

    def settle(self, e: FunctionEmitter) -> None:
        """Let the current block own the place."""
        e.own(self.array, self.part)


@record
class TupleSlot:
    """Several values."""

    slots: list[Slot]

    def fill(self, e: FunctionEmitter, value: tuple[Any, ...]) -> None:
        """Fill the slot of each value."""
        for slot, element in zip(self.slots, value, strict=True):
            slot.fill(e, element)

    def clear(self, e: FunctionEmitter) -> None:
        """Clear the slot of each value."""
        for slot in self.slots:
            slot.clear(e)

    def read(self, e: FunctionEmitter) -> tuple[Any, ...]:
        """Return the values."""
        return tuple(slot.read(e) for slot in self.slots)

    def settle(self, e: FunctionEmitter) -> None:
        """Settle the slot of each value."""
        for slot in self.slots:
            slot.settle(e)
