"""Carriers: what a loop carries from turn to turn, or a branch yields, and how all of it is handed on at once."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.copies import copy
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Array, Binding, Tile, contiguous
from tilewright.backends.cpu.host.arrays import array_bytes, copy_array
from tilewright.backends.cpu.host.slots import ArraySlot, Slot, TileSlot, TupleSlot, Word, slot_of
from tilewright.core.expr import Var
from tilewright.core.types import TileType, Type
from tilewright.errors import InternalError
from tilewright.native.llvm import I1, Value
from tilewright.records import record


@record
class Carrier:
    """A slot and, for a value that may be missing, whether it is there."""

    slot: Slot
    is_bound: Value | None = None

    @staticmethod
    def of(e: FunctionEmitter, var: Var, *, may_be_missing: bool = False, start: Binding | None = None) -> Carrier:
        """Return a carrier for the values of a variable; one that nobody else reads may stay where it lies."""
        slot = _taken_over(e, var.type, start) or _borrowed(e, var.type, start) or slot_of(e, var.type)
        if isinstance(slot, TileSlot):
            slot.follow(e, var)
        return Carrier(slot, e.b.slot(I1) if may_be_missing else None)

    def start_missing(self, e: FunctionEmitter) -> None:
        """Emit that there is no value yet."""
        assert self.is_bound is not None
        self.slot.clear(e)
        e.b.store(Value(I1, "false"), self.is_bound, 1)

    def fill(self, e: FunctionEmitter, value: Binding, is_bound: Value | None) -> None:
        """Emit the handing on of a value."""
        self.slot.fill(e, value)
        if self.is_bound is not None:
            e.b.store(is_bound or Value(I1, "true"), self.is_bound, 1)

    def bind(self, e: FunctionEmitter, var: Var) -> None:
        """Let a variable stand for what is carried."""
        e.bind(var, self.slot.read(e))
        if self.is_bound is not None:
            e.bound[var] = e.b.load(I1, self.is_bound, 1)


def _taken_over(e: FunctionEmitter, type_: Type, start: Binding | None) -> TileSlot | None:
    """Return the place of a tile as a slot, where it is packed and made by this block for no other reader."""
    if not isinstance(start, Tile) or not isinstance(type_, TileType) or start.place is None or e.readers(start) != 1:
        return None
    owned = e.blocks[-1].owned
    found = next((entry for entry in owned if isinstance(entry[0], Tile) and entry[0].place == start.place), None)
    if found is None or start.place.strides != contiguous(type_.shape):
        return None
    owned.remove(found)
    return TileSlot(type_, start.place, found[1], [Word.of(e, extent) for extent in type_.valid])


def _borrowed(e: FunctionEmitter, type_: Type, start: Binding | None) -> TileSlot | None:
    """Return the place of what the loop around carries as a slot, where nothing else in its turn reads that."""
    carriers: Sequence[Carrier] = getattr(e.regions[-1], "carriers", ()) if e.regions else ()
    if not isinstance(start, Tile) or not isinstance(type_, TileType) or e.readers(start) != 1:
        return None
    lenders = [c.slot for c in carriers if isinstance(c.slot, TileSlot) and c.slot.owners is start.owners]
    if not lenders or lenders[0].place != start.place or not lenders[0].has_room(type_):
        return None
    slot = TileSlot(type_, lenders[0].place, None, [Word.of(e, extent) for extent in type_.valid])
    lenders[0].borrowers.append(slot)
    return slot


def hand_on(e: FunctionEmitter, carriers: Sequence[Carrier], values: Sequence[tuple[Binding, Value | None]]) -> None:
    """Emit the filling of slots all at once: a tile or array that lies in another's slot goes through a copy."""
    slots = [carrier.slot for carrier in carriers]
    for slot, (value, _) in zip(slots, values, strict=True):
        if isinstance(slot, TileSlot) and isinstance(value, Tile):
            slot.keep(e, value)
            if slot.is_updated(e, value):
                e.destined[value] = slot.place
            elif e.row is not None:
                raise InternalError("a row of what a loop carries is not computed where it lies")
    e.flush()  # what is recorded may read what the slots hold
    free = [
        (_apart(e, value, [other for other in slots if other is not slot], slot), is_bound)
        for (value, is_bound), slot in zip(values, slots, strict=True)
    ]
    for carrier, (value, is_bound) in zip(carriers, free, strict=True):
        carrier.fill(e, value, is_bound)


def _apart(e: FunctionEmitter, value: Binding, others: Sequence[Slot], own: Slot) -> Binding:
    """Return a value that filling the slots before its own does not change."""
    if isinstance(value, Tile):
        place = e.stored(value)
        shared = any(isinstance(s, TileSlot) and s.holds(value) for s in others)
        turned = isinstance(own, TileSlot) and own.holds(value) and place != own.place
        return _tile_copy(e, value) if shared or turned else value
    if isinstance(value, Array) and any(isinstance(s, ArraySlot) and s.array is value for s in others):
        part = e.arena.take(array_bytes(value.type))
        temporary = Array(value.type, e.address(part[0]))
        copy_array(e, value, temporary)
        e.own(temporary, part)
        return temporary
    if isinstance(value, tuple) and not isinstance(own, TupleSlot):
        raise InternalError("a tuple is carried as something else")
    return value


def _tile_copy(e: FunctionEmitter, tile: Tile) -> Tile:
    place, part = e.reserve(tile.type)
    known = tile.written, tile.is_scattered, tile.is_made
    temporary = Tile(tile.type, tile.valid, place, None, [], tile.defined)
    temporary.written, temporary.is_scattered, temporary.is_made = known
    copy(e, tile, temporary)
    e.blocks[-1].owned.append((temporary, part))
    return temporary
