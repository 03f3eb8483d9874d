"""Turned tiles: tiles that lie on their side, worked on a column at a time, with a vector of rows in each."""

from __future__ import annotations

from tilewright.backends.cpu.compute.columns import Columns, computed, lane_of
from tilewright.backends.cpu.compute.nodes import IndexNode
from tilewright.backends.cpu.compute.row_memory import Pass, Spread, read, tensor_address, tile_address, window
from tilewright.backends.cpu.compute.traced import Lanes, rounded
from tilewright.backends.cpu.emit.values import LoadNode, Tile
from tilewright.dtypes import INT32
from tilewright.native.llvm import I32, Builder, Value, i64
from tilewright.records import mutable


@mutable
class TurnedColumns(Columns):
    """The columns of a few rows being emitted, one after the other: a fold's lanes are its results."""

    @property
    def step(self) -> int:
        """How many columns a vector holds."""
        return 1

    def emit(self) -> None:
        """Emit the pass, leaving what is folded among the rows' scalars."""
        self.spread = Spread(self.b.mark())
        for fold, lanes in zip(self.folds, self._long(), strict=True):
            self.row.scalars[fold.tile] = rounded(lanes, fold.tile.type.dtype)

    def _here(self, column: Value, mask: Value | None = None) -> Pass:
        return Pass(self.row, column, self.lanes, self.row.there, self.spread, down=down)


def down(b: Builder, tile: Tile, here: Pass) -> Lanes:
    """Return the elements of a tile in a few rows of a column."""
    if (1, *tile.type.shape)[-2] == 1:
        return _one_for_all(b, tile, here)
    if tile.is_column:
        return _column(b, tile, here)
    place = tile.place or here.row.saved.get(tile)
    if place is not None:
        stride = i64(place.strides[-2] or 1)
        return read(b, tile_address(b, tile, place, here), tile.type.dtype, here, stride)
    return _computed(b, tile, here)


def _column(b: Builder, tile: Tile, here: Pass) -> Lanes:
    """Return the elements that a few rows have of a tile of one column, found once for all columns."""
    if tile in here.row.scalars:
        return here.row.scalars[tile]
    if here.spread is None:
        return _found(b, tile, here)
    if tile not in here.spread.lanes:
        with b.earlier(here.spread.mark):
            here.spread.lanes[tile] = _found(b, tile, Pass(here.row, i64(0), here.count, here.mask, down=down))
    return here.spread.lanes[tile]


def _found(b: Builder, tile: Tile, here: Pass) -> Lanes:
    if tile.place is not None:
        stride = i64(tile.place.strides[-2])
        return read(b, tile_address(b, tile, tile.place, here), tile.type.dtype, here, stride)
    return _computed(b, tile, here)


def _one_for_all(b: Builder, tile: Tile, here: Pass) -> Lanes:
    """Return the element that a column has of a tile of one row, in every lane."""
    single = lane_of(b, tile, Pass(here.row, here.column if not tile.is_column else i64(0)))
    return Lanes(b, b.splat(single.value, here.count), single.element)


def _computed(b: Builder, tile: Tile, here: Pass) -> Lanes:
    node = tile.node
    if isinstance(node, LoadNode):
        stride = window(tile)[0].strides[-2]
        return read(b, tensor_address(b, tile, here), tile.type.dtype, here, stride)
    if isinstance(node, IndexNode):
        return _numbers(b, node, here)
    return computed(b, tile, here)


def _numbers(b: Builder, node: IndexNode, here: Pass) -> Lanes:
    """Return the number of the column being emitted, or those of its rows."""
    index = here.column if node.axis == -1 else here.row.indices[node.axis + 1]
    number = i64(0) if node.extent == 1 else index
    lanes = b.splat(b.convert("trunc", number, I32), here.count)
    if node.axis != -1 and node.extent != 1:
        each = ", ".join(f"i32 {lane}" for lane in range(here.count))
        lanes = b.op("add", lanes, Value(lanes.type, f"<{each}>"))
    return Lanes(b, lanes, INT32)
