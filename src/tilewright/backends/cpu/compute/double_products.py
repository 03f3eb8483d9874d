"""Products of doubles: matrices multiplied a few rows and a vector or two of columns at a time, where they lie."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.storage import first_lanes, load, store
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import F64, Value, i64, vector
from tilewright.native.terms import Term
from tilewright.records import record

ROWS = 4
"""How many rows of the left matrix meet each row of the right one at once."""


class Panel(NamedTuple):
    """A matrix in memory: its address, and how far its rows and its columns are apart."""

    pointer: Value
    across: Value
    along: Value


@record
class DoubleProduct:
    """One product being emitted; neighbours along the rows of `b` and `c` are adjacent."""

    e: FunctionEmitter
    a: Panel
    b: Panel
    c: Panel
    depth: Value
    accumulate: Value
    """Whether it is added to what `c` holds."""

    def emit(self, rows: Value, columns: Value) -> None:
        """Emit the product of so many rows and columns."""
        build = self.e.b
        whole = build.op("and", rows, i64(-ROWS))
        with build.loop(i64(0), whole, i64(ROWS)) as row:
            self._band(row, ROWS, columns)
        with build.loop(whole, rows, i64(1)) as row:
            self._band(row, 1, columns)

    def _band(self, row: Value, count: int, columns: Value) -> None:
        build, lanes = self.e.b, self.e.lanes
        whole = build.op("and", columns, i64(-lanes))
        rows = [build.op("add", row, i64(number)) for number in range(count)]
        with build.loop(i64(0), whole, i64(lanes)) as column:
            self._block(rows, column, None)
        left = build.op("sub", columns, whole)
        with build.when(build.compare("icmp sgt", left, i64(0))):
            self._block(rows, whole, first_lanes(build, left, lanes))

    def _block(self, rows: Sequence[Value], column: Value, mask: Value | None) -> None:
        build = self.e.b
        type_ = vector(F64, self.e.lanes)
        places = [self._at(self.c, row, column) for row in rows]
        zero = Value(type_, "zeroinitializer")
        held = [build.select(self.accumulate, load(build, type_, place, 8, mask), zero) for place in places]
        loop = build.open_loop(i64(0), self.depth, i64(1), held)
        right = Term(build, load(build, type_, self._at(self.b, loop.index, column), 8, mask))
        sums = [
            Term(build, build.splat(build.load(F64, self._at(self.a, row, loop.index), 8), self.e.lanes))
            .fma(right, Term(build, total))
            .value
            for row, total in zip(rows, loop.values, strict=True)
        ]
        for place, total in zip(places, build.close_loop(loop, sums), strict=True):
            store(build, total, place, 8, mask)

    def _at(self, panel: Panel, row: Value, column: Value) -> Value:
        build = self.e.b
        offset = build.op("add", build.op("mul", row, panel.across), build.op("mul", column, panel.along))
        return build.offset(panel.pointer, offset, F64)
