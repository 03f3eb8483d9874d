"""Searches: passes over a row that end with the columns in which something is found."""

from __future__ import annotations

from functools import reduce

from tilewright.backends.cpu.compute.columns import CHAINS, Columns, Fold, lane_of
from tilewright.backends.cpu.compute.nodes import SearchNode
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.native.llvm import Value, i64
from tilewright.native.terms import Term
from tilewright.records import mutable


@mutable
class SearchColumns(Columns):
    """The columns of a row being looked through: the first block with a match is folded, or the whole row.

    Blocks after it are not read. What matches only past the last block is rare, and NaN matches nothing.
    """

    def _long(self) -> list[Lanes]:
        (fold,), block = self.folds, self.step * CHAINS
        whole = self.b.op("and", self.width, i64(-block))
        loop = self.b.open_loop(i64(0), whole, i64(block))
        self.b.leave_loop(loop, self._has_match(fold, loop.index))
        self.b.close_loop(loop)
        is_found = self.b.compare("icmp slt", loop.index, whole)
        first = self.b.select(is_found, loop.index, i64(0))
        return self._between(fold, first, self.b.select(is_found, self.b.op("add", first, i64(block)), self.width))

    def _has_match(self, fold: Fold, first: Value) -> Value:
        """Return whether there is a match in the block from a column on."""
        assert isinstance(fold.node, SearchNode)
        matches = [
            lane_of(self.b, fold.node.matches, self._here(self.b.op("add", first, i64(turn * self.step)))).value
            for turn in range(CHAINS)
        ]
        return Term(self.b, reduce(lambda x, y: self.b.op("or", x, y), matches)).any()

    def _between(self, fold: Fold, first: Value, end: Value) -> list[Lanes]:
        """Emit the fold of the columns between two."""
        start = self._start(fold, self.lanes)
        loop = self.b.open_loop(first, end, i64(self.step), [start.value])
        here = self._here(loop.index, self._mask_of_rest(loop.index))
        following = self._step(here, self._as(loop.values, [start]))
        return self._as(self.b.close_loop(loop, [f.value for f in following]), [start])
