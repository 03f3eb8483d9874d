"""Searches: passes over a row that end with the columns in which something is found."""

from __future__ import annotations

from functools import reduce

from tilewright.backends.cpu.compute.columns import CHAINS, Columns, Fold, lane_of
from tilewright.backends.cpu.compute.nodes import SearchNode
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.native.llvm import I32, I64, TRUE, Value, i64, lanes, shuffled
from tilewright.native.terms import Term
from tilewright.records import mutable


@mutable
class SearchColumns(Columns):
    """The columns of a row being looked through: the first match in a block is the result, or the whole row is folded.

    Blocks after it are not read. What matches only past the last block is rare, and NaN matches nothing.
    """

    def _long(self) -> list[Lanes]:
        (fold,), b, block = self.folds, self.b, self.step * CHAINS
        whole = b.op("and", self.width, i64(-block))
        loop = b.open_loop(i64(0), whole, i64(block))
        b.leave_loop(loop, Term(b, reduce(lambda x, y: b.op("or", x, y), self._matches(fold, loop.index))).any())
        b.close_loop(loop)
        is_found = b.compare("icmp slt", loop.index, whole)
        number = b.either(is_found, lambda: self._first(fold, loop.index), lambda: self._folded_row(fold))
        return [Lanes(b, number, fold.tile.type.dtype)]

    def _matches(self, fold: Fold, first: Value) -> list[Value]:
        """Return where there is a match in each vector of the block from a column on."""
        assert isinstance(fold.node, SearchNode)
        places = [self.b.op("add", first, i64(turn * self.step)) if turn else first for turn in range(CHAINS)]
        return [lane_of(self.b, fold.node.matches, self._here(place)).value for place in places]

    def _first(self, fold: Fold, block: Value) -> Value:
        """Return the number of the first column that matches in a block of which some do."""
        b, masks = self.b, self._matches(fold, block)
        while len(masks) > 1:
            every = range(2 * lanes(masks[0].type))
            masks = [shuffled(b, one, other, every) for one, other in zip(masks[::2], masks[1::2], strict=True)]
        word = b.convert("bitcast", masks[0], f"i{lanes(masks[0].type)}")
        first = b.intrinsic("llvm.cttz", word, TRUE)
        first = first if first.type == I64 else b.convert("zext", first, I64)
        return b.convert("trunc", b.op("add", block, first), I32)

    def _folded_row(self, fold: Fold) -> Value:
        """Return what all the columns are folded to."""
        start = self._start(fold, self.lanes)
        loop = self.b.open_loop(i64(0), self.width, i64(self.step), [start.value])
        here = self._here(loop.index, self._mask_of_rest(loop.index))
        following = self._step(here, self._as(loop.values, [start]))
        (value,) = self.b.close_loop(loop, [f.value for f in following])
        return self._across(fold, Lanes(self.b, value, start.element)).value
