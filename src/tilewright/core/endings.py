"""Endings: whether control ever comes to what follows a statement, or out of the end of a body."""

from __future__ import annotations

from tilewright.core.expr import Const
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
)
from tilewright.core.visitor import statements


def ends(body: SeqStmts) -> bool:
    """Return whether control never falls out of the end of a body."""
    return any(map(is_last, body.stmts))


def is_last(stmt: Stmt) -> bool:
    """Return whether control never comes to what follows a statement."""
    if isinstance(stmt, (AssignStmt, EvalStmt)):  # as most are
        return False
    if isinstance(stmt, IfStmt):
        return stmt.else_body is not None and ends(stmt.then_body) and ends(stmt.else_body)
    if isinstance(stmt, SCOPES):
        return ends(stmt.body)
    if isinstance(stmt, WhileStmt):
        return isinstance(stmt.condition, Const) and stmt.condition.value is True and not _is_left(stmt.body)
    return isinstance(stmt, (ReturnStmt, BreakStmt, ContinueStmt))


def _is_left(body: SeqStmts) -> bool:
    """Return whether a `break` below a loop's body may leave that loop; one of a loop inside counts as well."""
    return any(isinstance(stmt, BreakStmt) for stmt in statements(body))
