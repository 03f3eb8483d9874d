"""Scopes: where in a function's body a call stands, and whether what it reads ends there."""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tile
from tilewright.core.expr import Call, Var
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, WhileStmt
from tilewright.core.visitor import bodies


def body_of(body: SeqStmts, call: Call) -> SeqStmts:
    """Return the innermost body one of whose statements binds a call; an empty one where none does."""
    if any(isinstance(stmt, AssignStmt) and stmt.value is call for stmt in body):
        return body
    found = (body_of(inner, call) for stmt in body for inner in bodies(stmt))
    return next((inner for inner in found if inner.stmts), SeqStmts())


def ends_here(e: FunctionEmitter, call: Call, tile: Tile, name: Var) -> bool:
    """Return whether a call is the last to read a tile that the same body made, so that its memory can be taken over.

    A body that runs again makes the tile again, or is handed it by the turn before.
    """
    if sum(e.uses.get(var, 0) for var in set(tile.owners)) != 1:
        return False
    body = body_of(e.function.body, call)
    made = {var for stmt in body for var in _bound(stmt)} | _carried(e.function.body, body)
    return made.issuperset((name, *tile.owners))


def _bound(stmt: object) -> list[Var]:
    if isinstance(stmt, AssignStmt):
        return [stmt.var]
    return list(getattr(stmt, "return_vars", ()))


def _carried(outer: SeqStmts, body: SeqStmts) -> set[Var]:
    """Return the variables that the loop around a body carries."""
    for stmt in outer:
        if isinstance(stmt, (ForStmt, WhileStmt)) and stmt.body is body:
            return {arg.var for arg in stmt.iter_args}
        for inner in bodies(stmt):
            found = _carried(inner, body)
            if found:
                return found
    return set()
