"""Memory: where the tiles and arrays of a function lie, and until when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from tilewright.backends.cpu.emit.arena import Arena, Part, Plan
from tilewright.backends.cpu.emit.stops import Spanned, Stopping
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import Array, Place, Tile, contiguous
from tilewright.core.expr import Var
from tilewright.core.types import TileType
from tilewright.native.llvm import Builder, Value, i64
from tilewright.records import mutable

FEW_PLACES, LINE = 1024, 64
"""Bytes from row to row that let rows begin at four places of the cache, or fewer; and those of a line."""


@mutable
class Block:
    """Statements being emitted in order: the values they own, with the parts of the arena that hold them."""

    owned: list[tuple[Tile | Array, Part]] = field(default_factory=list[tuple["Tile | Array", Part]])
    known: dict[tuple[Value, ...], Value] = field(default_factory=dict[tuple[Value, ...], Value])
    """Valid extents that have been checked and cut: tiles of the same ones are known to be alike."""


class Remembering(Stopping):
    """Code that keeps values in an arena while they are read."""

    def __init__(self, program: Unit, b: Builder, at: Spanned) -> None:
        super().__init__(program, b, at)
        self.arena = Arena(plan=Plan() if program.module.places is not None else None)
        self.blocks: list[Block] = [Block()]
        self.uses: dict[Var, int] = {}
        """How often each variable is still read."""

    def address(self, offset: int) -> Value:
        """Return an address in the arena."""
        return self.b.offset(self.arena.base, i64(offset), "i8")

    def reserve(self, type_: TileType) -> tuple[Place, Part]:
        """Return a packed place that nobody owns yet."""
        part = self.arena.take(room_of(type_))
        return Place(self.address(part[0]), contiguous(type_.shape)), part

    def own(self, value: Tile | Array, part: Part) -> None:
        """Let the current block give a part back once its value is no longer read."""
        self.blocks[-1].owned.append((value, part))
        self.arena.hold(part, value)

    def take(self, tile: Tile) -> Place:
        """Return a packed place for a tile, which the current block owns."""
        place, part = self.reserve(tile.type)
        self.own(tile, part)
        return place

    def fresh(self, type_: TileType, valid: tuple[Value, ...]) -> Tile:
        """Return a tile with a place of its own and nothing in it."""
        tile = Tile(type_, valid)
        tile.place = self.take(tile)
        return tile

    def readers(self, tile: Tile | Array) -> int:
        """Return how often a value is still read, under any of its names."""
        return sum(self.uses.get(var, 0) for var in set(tile.owners))

    def release(self) -> None:
        """Give back what the current block's values no longer need."""
        block = self.blocks[-1]
        for entry in list(block.owned):
            if self.readers(entry[0]) <= 0:
                block.owned.remove(entry)
                self.arena.give_back(entry[1])

    def once(self, key: tuple[Value, ...], make: Callable[[], Value]) -> Value:
        """Return what was made for a key in this block or around it, made here where there is nothing yet."""
        for block in reversed(self.blocks):
            if key in block.known:
                return block.known[key]
        self.blocks[-1].known[key] = value = make()
        return value


def distance(length: int, size: int) -> int:
    """Return how many elements of a size rows so long lie apart: one line more where all would begin at few places."""
    return length + LINE // size if length * size % FEW_PLACES == 0 else length


def room_of(type_: TileType) -> int:
    """Return how many bytes a tile takes in memory, where every element is at least one."""
    return type_.nbytes * max(1, 8 // type_.dtype.bits)
