"""Told rows: a function that makes a window's rows step by step tells its peers after each step how far it has come.

    for block in pl.range(8):
        pl.store(pl.matmul(pl.load(a, [block * 64, 0], [64, 64]), right), [block * 64, 0], partial)

becomes a loop that ends each turn with a signal to every rank. Whoever sums those rows need not wait for the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.access import Access
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, ConstInt, Var
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import (
    AssignStmt,
    ForStmt,
    SeqStmts,
    Stmt,
    YieldStmt,
)
from tilewright.core.visitor import statements
from tilewright.passes import ssa
from tilewright.passes.aliases import Aliases, Footprints
from tilewright.passes.row_loops import calls, is_write_of, names, row_loops, stored_rows
from tilewright.records import record


@record
class ToldRows:
    """A function that tells how far it has come, in a window of signals behind its other parameters."""

    function: Function
    rows: int
    """How many rows each step makes, those of all steps one behind the other."""
    steps: int


def told_rows(program: Program, name: str, position: int, tell: Function) -> ToldRows | None:
    """Return a function that calls for `tell` after each step of a loop which makes all that it writes of a parameter.

    None where it does not make rows in their order, in a loop that always runs to its end.
    """
    program = ssa.run(program)
    function, aliases = program[name], Footprints(program).aliases(name)
    for loop in row_loops(function):
        rows = _rows(function, loop, function.params[position], aliases)
        if rows is not None:
            assert isinstance(loop.stop, ConstInt)
            return ToldRows(_telling(function, loop, tell), rows, int(loop.stop.value))
    return None


def _rows(function: Function, loop: ForStmt, param: Var, aliases: Aliases) -> int | None:
    """Return how many rows of a window each turn of a loop makes, all that its function writes of it."""

    def writes(body: SeqStmts) -> int:
        return sum(access is not Access.READ and param in owners for access, owners in aliases.accesses(body))

    stores = [call for call in calls(loop.body) if is_write_of(call, param, aliases)]
    if not stores or not len(stores) == writes(loop.body) == writes(function.body):
        return None
    made = {s.var: s.value for s in statements(loop.body) if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    same = {param, *names(function, param)}
    rows = {stored_rows(call, loop, made, same) for call in stores}
    return rows.pop() if len(rows) == 1 else None


class _Telling(Rewriter):
    """Ends the turns of one loop with what tells others."""

    def __init__(self, loop: ForStmt, told: Sequence[Stmt]) -> None:
        super().__init__()
        self._loop = loop
        self._told = told

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a counted loop."""
        if stmt is not self._loop:
            return super().for_loop(stmt)
        stmts = stmt.body.stmts
        at = len(stmts) - isinstance(stmts[-1], YieldStmt)
        return (replace(stmt, body=SeqStmts((*stmts[:at], *self._told, *stmts[at:]))),)


def _telling(function: Function, loop: ForStmt, tell: Function) -> Function:
    """Return a function with one more parameter, the window that its loop tells others by."""
    (given,) = tell.params
    told = Var(given.name_hint, given.type)
    body = Rewriter(replaced={given: told}, fresh=True).body(tell.body)
    made = function.with_body(_Telling(loop, body.stmts).body(function.body))
    directions = (*made.param_directions, ParamDirection.InOut)
    return replace(made, params=(*made.params, told), param_directions=directions)
