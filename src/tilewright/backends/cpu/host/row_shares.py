"""Row shares: parallel loops of few turns, whose tiles are divided among threads by their rows instead.

A loop of one turn would keep one thread busy, and one of three turns two threads for as long as two turns take. Where
a turn is one loop over rows, each thread makes all the turns, and of each the rows that fall to it.
"""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.signature import Signature
from tilewright.backends.cpu.emit.values import static
from tilewright.backends.cpu.host.functions import made_results, roots_of
from tilewright.core.expr import Invoke
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import evaluated
from tilewright.native.llvm import Value
from tilewright.passes.filled_rows import straightened
from tilewright.passes.fusing import fusion
from tilewright.passes.parted_stores import parted
from tilewright.passes.woven_stores import woven

FEW = 8
"""Turns from which on they are handed out as they are."""


def divides_rows(e: FunctionEmitter, loop: ForStmt, turns: Value) -> bool:
    """Return whether the rows of a loop's tiles are divided: it has few turns, and only calls what can be."""
    unit, count, calls = e.program, static(turns), [evaluated(stmt) for stmt in loop.body]
    if count is None or count >= FEW or len(calls) != 1 or not isinstance(calls[0], Invoke):
        return False
    if count * unit.durations.each_turn(loop) < unit.worth:
        return False
    from tilewright.passes.row_shares import is_divisible  # few loops have so few turns

    function = unit.program[calls[0].op.name]
    roots = roots_of(unit, function, Signature.plain(function))
    return not made_results(unit, function) and is_divisible(
        fusion(woven(parted(straightened(function, roots)), roots), roots)
    )
