"""Ways out: whether statements may leave the loop around them, its turn, or the function."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.stmt import BreakStmt, ContinueStmt, ForStmt, LoopStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.visitor import bodies, statements


def leaves(stmt: Stmt) -> bool:
    """Return whether a statement may leave the loop around it, its turn, or the function."""
    if isinstance(stmt, (BreakStmt, ContinueStmt, ReturnStmt)):
        return True
    if isinstance(stmt, (ForStmt, WhileStmt)):
        return returns((stmt,)) > 0
    return any(leaves(inner) for body in bodies(stmt) for inner in body)


def ends_early(loop: LoopStmt) -> bool:
    """Return whether a loop may end before its last turn."""

    def breaks(stmt: Stmt) -> bool:
        inner = () if isinstance(stmt, (ForStmt, WhileStmt)) else bodies(stmt)
        return isinstance(stmt, BreakStmt) or any(breaks(each) for body in inner for each in body)

    return any(map(breaks, loop.body)) or returns((loop,)) > 0


def returns(stmts: Sequence[Stmt]) -> int:
    """Return in how many places statements return from their function."""
    return sum(isinstance(stmt, ReturnStmt) for stmt in statements(SeqStmts(tuple(stmts))))


def returns_early(body: SeqStmts) -> bool:
    """Return whether a function's body may return before its end."""
    return returns(tuple(body)) != sum(isinstance(stmt, ReturnStmt) for stmt in tuple(body)[-1:])
