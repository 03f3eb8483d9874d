"""Recording: row-by-row ops that wait to be emitted together.

Nothing in a group is computed when it is recorded. When something needs a result in memory, the group is emitted as
one loop over rows; results that are read later get a place in the arena.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from tilewright.backends.cpu.emit.groups import Group, StoreSink, grouped, level_of, operands_of
from tilewright.backends.cpu.emit.memory import Remembering
from tilewright.backends.cpu.emit.stops import Spanned
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import LoadNode, Place, Tile, static
from tilewright.errors import InternalError
from tilewright.native.llvm import Builder, i64

DEEPEST = 64
"""How many functions may be applied to each other before what they compute is kept: emitting them goes as deep."""


class Recording(Remembering):
    """Code in which tiles may be recorded and not emitted yet."""

    def __init__(self, program: Unit, b: Builder, at: Spanned) -> None:
        super().__init__(program, b, at)
        self.group: Group | None = None
        self.floating: list[Tile] = []
        """Tiles of one row that are recorded in no group: every group may read them."""
        self.deepest = 0
        """How many functions are applied to each other, at most, in what is recorded."""

    @abstractmethod
    def emit_group(self, group: Group) -> None:
        """Emit one loop over rows."""

    @property
    def recorded(self) -> list[Tile]:
        """What has been recorded and not emitted yet."""
        return [*self.floating, *(self.group.tiles if self.group is not None else ())]

    def record(self, tile: Tile) -> Tile:
        """Add a tile to the group of its rows, starting another group where the rows differ; one row may float."""
        node = tile.node
        assert node is not None
        self.deepest = max(self.deepest, node.depth)
        if self._floats(tile):
            self.floating.append(tile)
            return tile
        waiting = [o for o in operands_of(tile) if o.node is not None and o not in self.floating]
        if any(o.rows != tile.rows for o in waiting) or (self.group is not None and self.group.rows != tile.rows):
            self.flush()
        node.level = max(map(level_of, node.operands), default=0)
        if self.group is None:
            self.group = Group(tile.rows)
        self.group.tiles.append(tile)
        return tile

    def _floats(self, tile: Tile) -> bool:
        """Return whether a tile joins no group: one row that is loaded, or made of such rows beside another group."""
        if tile.is_column or not tile.rows or any(static(extent) != 1 for extent in tile.rows):
            return False
        if isinstance(tile.node, LoadNode):
            return tile.node.tensor.strides[-1] == i64(1)
        beside = self.group is not None and self.group.rows != tile.rows
        return beside and all(o.node is None or o in self.floating for o in operands_of(tile))

    def record_store(self, sink: StoreSink) -> None:
        """Add a store to the group of its tile's rows."""
        if self.group is None:
            self.group = Group(sink.tile.rows)
        self.group.stores.append(sink)

    def withdraw(self, tile: Tile) -> bool:
        """Take back what was recorded but not emitted yet; return whether it was."""
        if tile in self.floating:
            self.floating.remove(tile)
            return True
        if self.group is None or tile not in self.group.tiles:
            return False
        self.group.tiles.remove(tile)
        if not self.group.tiles and not self.group.stores:
            self.group = None
        return True

    def stored(self, tile: Tile) -> Place:
        """Return where a tile lies, after emitting what computes it."""
        if tile.place is None:
            self.flush()
        if tile.place is None:
            raise InternalError("a tile that is read has no place")
        return tile.place

    def run(self, group: Group) -> None:
        """Emit a group by itself, after what has been recorded."""
        self.flush()
        self.emit_group(group)
        self.release()

    def flush(self) -> None:
        """Emit what has been recorded."""
        group, self.group = self.group, None
        floating, self.floating = self.floating, []
        self.deepest = 0
        read = {operand for tile in group.tiles for operand in operands_of(tile)} if group is not None else set[Tile]()
        for apart in grouped(tile for tile in floating if group is None or tile.rows != group.rows):
            self._emit(apart, read)
        if group is not None:
            group.tiles[:0] = floating
            self._emit(group)
        self.release()

    def _emit(self, group: Group, read: Collection[Tile] = ()) -> None:
        """Emit a group; what another group reads of it is stored too, but for what is in memory anyway."""
        computed = [t for t in group.tiles if not isinstance(t.node, LoadNode) and t in read]
        wanted = [t for t in group.tiles if t.place is None and (t in computed or self.readers(t) > 0)]
        if wanted or group.stores:
            group.places = {t: self.take(t) for t in wanted}
            self.emit_group(group)
