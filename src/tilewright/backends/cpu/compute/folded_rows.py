"""Folded rows: where a fold of columns has the rows from that it folds, a vector of them at a time.

They lie in memory, are named by indices, or are computed as they are folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tilewright.backends.cpu.compute.columns import lane_of
from tilewright.backends.cpu.compute.matrices import Matrix
from tilewright.backends.cpu.compute.nodes import RowsNode
from tilewright.backends.cpu.compute.row_copies import fetch_ahead
from tilewright.backends.cpu.compute.row_memory import Pass, Row, Spread, row_start, times
from tilewright.backends.cpu.compute.storage import load
from tilewright.backends.cpu.compute.traced import Lanes, from_memory
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.groups import sources_of
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Tile
from tilewright.native.llvm import Value, i64, vector
from tilewright.records import record


class Rows(Protocol):
    """Rows that are folded."""

    @property
    def gathered(self) -> list[RowsNode]:
        """Those among what they are made of that lie anywhere."""
        ...

    def kept(self, columns: Sequence[Value], mask: Value | None) -> list[Mapping[Tile, Lanes]]:
        """Emit what is the same in every row, for some vectors of columns."""
        ...

    def vectors(
        self,
        batch: tuple[Value, ...],
        row: Value,
        columns: Sequence[Value],
        mask: Value | None,
        kept: Sequence[Mapping[Tile, Lanes]],
    ) -> list[Lanes]:
        """Emit some vectors of a row."""
        ...


@record
class RowsInMemory:
    """Rows of matrices as they lie."""

    e: FunctionEmitter
    matrix: Matrix

    @property
    def gathered(self) -> list[RowsNode]:
        """Return nothing: each row follows the other."""
        return []

    def kept(self, columns: Sequence[Value], mask: Value | None) -> list[Mapping[Tile, Lanes]]:
        """Emit nothing."""
        return [{} for _ in columns]

    def vectors(
        self,
        batch: tuple[Value, ...],
        row: Value,
        columns: Sequence[Value],
        mask: Value | None,
        kept: Sequence[Mapping[Tile, Lanes]],
    ) -> list[Lanes]:
        """Emit the loads of some vectors of a row."""
        return [self._vector((*batch, row, column), mask) for column in columns]

    def _vector(self, indices: Sequence[Value], mask: Value | None) -> Lanes:
        b, dtype, pointer = self.e.b, self.matrix.dtype, self.matrix.pointer
        for index, stride in zip(indices, self.matrix.strides, strict=True):
            pointer = b.offset(pointer, times(b, index, stride), memory_type(dtype))
        whole = vector(memory_type(dtype), self.e.lanes)
        return from_memory(b, load(b, whole, pointer, dtype.get_byte(), mask), dtype)


@record
class ComputedRows:
    """Rows of a matrix that is left to whoever reads it."""

    e: FunctionEmitter
    tile: Tile

    @property
    def sources(self) -> list[Tile]:
        """All that they are computed from, themselves included."""
        return [*sources_of(self.tile), self.tile]

    @property
    def gathered(self) -> list[RowsNode]:
        """Those among what they are made of that indices name."""
        return [tile.node for tile in self.sources if isinstance(tile.node, RowsNode)]

    def kept(self, columns: Sequence[Value], mask: Value | None) -> list[Mapping[Tile, Lanes]]:
        """Emit the loads of rows that every row meets."""
        shared = [tile for tile in self.sources if not tile.is_column and all(n == 1 for n in tile.type.shape[:-1])]
        passes = [self._here(Row((i64(0),)), column, mask, self._spread()) for column in columns]
        return [{tile: lane_of(self.e.b, tile, here) for tile in shared} for here in passes]

    def vectors(
        self,
        batch: tuple[Value, ...],
        row: Value,
        columns: Sequence[Value],
        mask: Value | None,
        kept: Sequence[Mapping[Tile, Lanes]],
    ) -> list[Lanes]:
        """Emit the computation of some vectors of a row."""
        here, spread = Row((*batch, row)), self._spread()
        loads = [tile for tile in self.sources if isinstance(tile.node, LoadNode) and not tile.is_column]
        here.starts.update({tile: row_start(self.e.b, tile, here) for tile in loads})
        passes = [self._here(here, column, mask, spread) for column in columns]
        for each, known in zip(passes, kept, strict=True):
            each.known.update(known)
        return [lane_of(self.e.b, self.tile, each) for each in passes]

    def _spread(self) -> Spread:
        return Spread(self.e.b.mark(), is_exact=True)

    def _here(self, row: Row, column: Value, mask: Value | None, spread: Spread) -> Pass:
        return Pass(row, column, self.e.lanes, mask, spread)


def fetch_gathered(e: FunctionEmitter, rows: Rows, row: Value, column: Value, nbytes: int) -> None:
    """Emit hints to fetch a row that is folded later, where nobody can guess it."""
    for node in rows.gathered:
        fetch_ahead(e, e.b.offset(node.begin(row), column, memory_type(node.dtype)), nbytes)
