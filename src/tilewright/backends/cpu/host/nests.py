"""Nests: the turns of two parallel loops, one right inside the other, as those of one region.

A chunk has some rows of turns, the first and the last of which perhaps in part: what the outer loop's turns have in
common stays together. Products of few columns, and matrices of few rows, would keep few threads busy otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Scalar, static
from tilewright.backends.cpu.host.loops import Loop, counted_loop, turns_of
from tilewright.core.stmt import ForStmt
from tilewright.dtypes import INDEX
from tilewright.native.llvm import Value, i64
from tilewright.passes.nests import nested
from tilewright.records import record

ENOUGH = 256
"""Turns of an outer loop that threads share alone."""


@record
class Nest:
    """A loop right inside another one, and how many turns both have."""

    outer: ForStmt
    inner: ForStmt
    turns: Value
    words: tuple[Value, Value, Value]
    """Where the inner variable starts, its step, and how many turns the inner loop has."""

    @staticmethod
    def of(e: FunctionEmitter, outer: ForStmt, rows: Value) -> Nest | None:
        """Return the nest that begins with a loop of so many turns; None where threads share these alone."""
        known = static(rows)
        inner = nested(e.program.program, outer) if known is None or known < ENOUGH else None
        if inner is None:
            return None
        stepped, width = turns_of(e, inner)
        wide = static(width)
        turns = e.b.op("mul", rows, width) if known is None or wide is None else i64(known * wide)
        return Nest(outer, inner, turns, (*stepped, width))

    def emit(
        self, e: FunctionEmitter, turns: tuple[Value, Value], stepped: tuple[Value, Value], words: Sequence[Value]
    ) -> None:
        """Emit the turns from one to another, given where the outer variable starts, its step, and the nest's words."""
        b, (first, last), (start, step), (begin, by, width) = e.b, turns, stepped, words
        width = b.intrinsic("llvm.umax", width, i64(1))  # a loop without turns has no chunk, and yet divides by them
        beyond = b.op("add", last, b.op("sub", width, i64(1)))
        e.regions.append(Loop((), "", ""))  # nobody goes on to its next turn: the inner loop is all it does
        with b.loop(b.op("udiv", first, width), b.op("udiv", beyond, width), i64(1)) as row:
            e.bind(self.outer.loop_var, Scalar(b.op("add", start, b.op("mul", row, step)), INDEX))
            before = b.op("mul", row, width)
            head = b.intrinsic("llvm.smax", b.op("sub", first, before), i64(0))
            tail = b.intrinsic("llvm.smin", b.op("sub", last, before), width)
            counted_loop(e, self.inner, (head, tail), (), (b.op("add", begin, b.op("mul", head, by)), by))
            if e.program.polled and e.program.work.short(self.outer) is None:
                e.worked(1 + e.program.work.body(self.outer.body).units)
        e.regions.pop()
