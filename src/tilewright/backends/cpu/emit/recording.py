"""Recording: row-by-row ops that wait to be emitted together, as the plan of `passes.fusion` says.

Nothing in a group is computed when it is recorded. When the plan ends it, or something needs a result in memory, the
group is emitted as one loop over rows; results that are read later get a place in the arena.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection

from tilewright.backends.cpu.emit.groups import Group, StoreSink, grouped, level_of, operands_of, sources_of
from tilewright.backends.cpu.emit.memory import Remembering, distance
from tilewright.backends.cpu.emit.stops import Spanned
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import Array, LoadNode, Place, Tile, static
from tilewright.core.expr import Var
from tilewright.errors import InternalError
from tilewright.native.llvm import Builder, Value
from tilewright.passes.fusion import Step


class Recording(Remembering):
    """Code in which tiles may be recorded and not emitted yet."""

    def __init__(self, program: Unit, b: Builder, at: Spanned) -> None:
        super().__init__(program, b, at)
        self.group: Group | None = None
        self.floating: list[Tile] = []
        """Tiles of one row that are recorded in no group: every group may read them."""
        self.destined: dict[Tile, Place] = {}
        """Where tiles that wait are computed, of those for which that has been said."""
        self.step = Step()
        """What the plan says about the statement being emitted."""
        self.row: Value | None = None
        """The row of tiles that is computed, where a loop makes all its turns for one row after the other."""

    @abstractmethod
    def emit_group(self, group: Group) -> None:
        """Emit one loop over rows."""

    def record(self, tile: Tile, *, goes_on: bool = False) -> Tile:
        """Let a tile wait in the group of its rows, or beside it, as the plan says.

        One that `goes_on` belongs to what its statement has recorded just before.
        """
        tile.span = self.at.span
        if not goes_on:
            self.follow()
        if self.step.in_place:
            return tile
        if self.step.floats:
            self.floating.append(tile)
            return tile
        node = tile.node
        assert node is not None
        node.level = max(map(level_of, node.operands), default=0)
        group = self._group(tile.rows)
        group.tiles += [*sources_of(tile, self._is_left), tile]
        group.turned |= self.step.turned
        return tile

    def _is_left(self, tile: Tile) -> bool:
        """Return whether a tile is recorded but waits nowhere: whoever reads it computes it."""
        return tile.node is not None and tile.place is None and not self.waits(tile)

    def belong(self, value: Tile | Array, var: Var) -> None:
        """Let a variable stand for a value, which is there while that is read; so is what it is computed from."""
        value.owners.append(var)
        for source in sources_of(value) if isinstance(value, Tile) and self.step.in_place else ():
            source.owners.append(var)

    def record_store(self, sink: StoreSink, *, goes_on: bool = False) -> None:
        """Add a store to the group of its tile's rows."""
        sink.span = self.at.span
        if not goes_on:
            self.follow()
        sink.updates = self.step.updates
        self._group(sink.tile.rows).stores.append(sink)

    def follow(self) -> None:
        """Emit what has been recorded where the plan ends it, or begins something else."""
        if self.step.ends or (self.step.begins and self.group is not None):
            self.flush()

    def _group(self, rows: tuple[Value, ...]) -> Group:
        if self.group is None:
            self.group = Group(rows)
        if any(static(a) != static(b) for a, b in zip(self.group.rows, rows, strict=True) if _are_known(a, b)):
            raise InternalError("the plan puts tiles of different rows into one group")
        return self.group

    def waits(self, tile: Tile) -> bool:
        """Return whether a tile is recorded and not emitted yet."""
        return tile in self.floating or (self.group is not None and tile in self.group.tiles)

    def read_by(self, is_meant: Callable[[Tile], bool]) -> list[Tile]:
        """Return what waits to be computed or stored, and reads some tiles for that."""
        group, stores = self.group, [] if self.group is None else self.group.stores
        tiles = [*self.floating, *(group.tiles if group is not None else ())]
        found = [tile for tile in tiles if any(map(is_meant, operands_of(tile)))]
        return found + [sink.tile for sink in stores for tile in (sink.tile, sink.mask) if tile and is_meant(tile)]

    def stored(self, tile: Tile) -> Place:
        """Return where a tile lies, after emitting what computes it."""
        if tile.place is None and isinstance(tile.node, LoadNode) and not self.waits(tile):  # meant to be read in place
            self._emit(Group(tile.rows, [tile]))
        elif tile.place is None:
            self.flush()
        if tile.place is None:
            raise InternalError("a tile that is read has no place")
        return tile.place

    def run(self, group: Group) -> None:
        """Emit a group by itself, after what has been recorded."""
        self.flush()
        self.emit_group(group)
        self.b.place_at(self.at.span)
        self.release()

    def flush(self) -> None:
        """Emit what has been recorded."""
        group, self.group = self.group, None
        floating, self.floating = self.floating, []
        read = {operand for tile in group.tiles for operand in operands_of(tile)} if group is not None else set[Tile]()
        for apart in grouped(tile for tile in floating if group is None or tile.rows != group.rows):
            self._emit(apart, read)
        if group is not None:
            group.tiles[:0] = floating
            self._emit(group)
        self.b.place_at(self.at.span)
        self.release()

    def _emit(self, group: Group, read: Collection[Tile] = ()) -> None:
        """Emit a group; what another group reads of it is stored too, but for what is in memory anyway."""
        computed = [t for t in group.tiles if not isinstance(t.node, LoadNode) and t in read]
        wanted = [t for t in group.tiles if t.place is None and (t in computed or self.readers(t) > 0)]
        if wanted or group.stores:
            group.places = {t: self.destined.pop(t, None) or self._taken(t, group) for t in wanted}
            self.emit_group(group)

    def _taken(self, tile: Tile, group: Group) -> Place:
        """Return a place of its own for a tile, on its side where a vector holds elements of several rows."""
        if group.turned and not tile.is_column and len(tile.type.shape) == 2:
            rows, columns = tile.type.shape
            apart = distance(rows, tile.type.dtype.get_byte())
            part = self.arena.take(apart * columns * tile.type.dtype.get_byte())
            self.own(tile, part)
            return Place(self.address(part[0]), (1, apart))
        return self.take(tile)


def _are_known(*values: Value) -> bool:
    return all(static(value) is not None for value in values)
