"""Told rows: a function that makes a window's rows step by step tells its peers after each step how far it has come.

    for block in pl.range(8):
        pl.store(pl.matmul(pl.load(a, [block * 64, 0], [64, 64]), right), [block * 64, 0], partial)

becomes a loop that ends each turn with a signal to every rank. Whoever sums those rows need not wait for the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilewright.core.access import Access
from tilewright.core.build import arguments, scalar
from tilewright.core.enums import ForKind, FunctionType, ParamDirection
from tilewright.core.expr import Call, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    YieldStmt,
)
from tilewright.core.types import TileType, is_static, static_shape
from tilewright.core.visitor import expressions, statements
from tilewright.passes import ssa
from tilewright.passes.aliases import Aliases, Footprints
from tilewright.passes.linear import distance
from tilewright.records import record

STORE = "tile.store"


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
    for loop in _loops(function):
        rows = _rows(function, loop, function.params[position], aliases)
        if rows is not None:
            assert isinstance(loop.stop, ConstInt)
            return ToldRows(_telling(function, loop, tell), rows, int(loop.stop.value))
    return None


def _loops(function: Function) -> Iterator[ForStmt]:
    """Yield the loops of kernels that run once, and to their end."""
    exits = [s for s in statements(function.body) if isinstance(s, ReturnStmt)]
    if any(s is not function.body.stmts[-1] for s in exits):
        return
    scopes = [s.body for s in function.body.stmts if isinstance(s, InCoreScopeStmt) and not s.attrs and not s.deps]
    for body in [function.body] if function.func_type is FunctionType.InCore else scopes:
        yield from (s for s in body.stmts if isinstance(s, ForStmt) and _is_counted(s))


def _is_counted(loop: ForStmt) -> bool:
    """Return whether a loop takes steps from 0 on, as many as its text says."""
    leaves = any(isinstance(s, (BreakStmt, ContinueStmt)) for s in statements(loop.body))
    numbers = [each.value for each in (loop.start, loop.step) if isinstance(each, ConstInt)]
    is_static = isinstance(loop.stop, ConstInt) and int(loop.stop.value) > 0
    return numbers == [0, 1] and is_static and loop.kind is ForKind.Sequential and not leaves


def _rows(function: Function, loop: ForStmt, param: Var, aliases: Aliases) -> int | None:
    """Return how many rows of a window each turn of a loop makes, all that its function writes of it."""

    def writes(body: SeqStmts) -> int:
        return sum(access is not Access.READ and param in owners for access, owners in aliases.accesses(body))

    stores = [call for call in _calls(loop.body) if _is_write_of(call, param, aliases)]
    if not stores or not len(stores) == writes(loop.body) == writes(function.body):
        return None
    made = {s.var: s.value for s in statements(loop.body) if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    same = {param, *_names(function, param)}
    rows = {_stored(call, loop, made, same) for call in stores}
    return rows.pop() if len(rows) == 1 else None


def _calls(body: SeqStmts) -> Iterator[Call]:
    yield from (e for s in statements(body) for e in expressions(s) if isinstance(e, Call))


def _is_write_of(call: Call, param: Var, aliases: Aliases) -> bool:
    written = arguments(call)[call.op.spec.writes] if call.op.spec.writes is not None else None
    return isinstance(written, Expr) and param in aliases.owners(written)


def _names(function: Function, param: Var) -> Iterator[Var]:
    """Yield the variables that are a parameter as it is, written perhaps: no view of it."""
    known = {param}
    for stmt in statements(function.body):
        found: list[Var] = []
        if isinstance(stmt, ForStmt):
            found = [arg.var for arg in stmt.iter_args if arg.init in known]
        elif isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name == STORE:
            found = [stmt.var] if arguments(stmt.value)["output_tensor"] in known else []
        known.update(found)
        yield from found


def _stored(call: Call, loop: ForStmt, made: Mapping[Var, Call], same: set[Var]) -> int | None:
    """Return how many rows a store makes where those of each turn follow those of the last."""
    given = arguments(call)
    tile, offsets, into = (given.get(name) for name in ("tile", "offsets", "output_tensor"))
    if call.op.name != STORE or into not in same or not isinstance(offsets, MakeTuple) or not isinstance(tile, Expr):
        return None
    assert isinstance(tile.type, TileType)
    if not is_static(tile.type.shape) or len(tile.type.shape) != len(offsets.elements):
        return None
    rows = static_shape(tile.type.shape)[0]
    first = scalar("mul", loop.loop_var, integer(rows))
    return rows if distance(made, first, offsets.elements[0]) == 0 else None


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
