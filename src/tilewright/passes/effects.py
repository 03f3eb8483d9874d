"""Effects: what an expression does besides giving a value, and a statement besides going on to the next."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Call, Expr, Invoke, Submit
from tilewright.core.op import Effect, Kind
from tilewright.core.stmt import BreakStmt, ContinueStmt, ForStmt, LoopStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies, evaluated, statements


def effect_of(expr: Expr) -> Effect:
    """Return what evaluating an expression does to memory; calls of functions may do anything."""
    if isinstance(expr, (Invoke, Submit)):
        return Effect.WRITE
    if not isinstance(expr, Call):
        return Effect.PURE
    spec, kind = expr.op.spec, expr.op.kind
    if spec.effect is Effect.WRITE and isinstance(expr.type, TileType) and kind is not Kind.SYSTEM:
        return Effect.WRITE if spec.is_atomic else Effect.PURE  # a tile that is written is a new one
    return spec.effect


def writes_memory(body: SeqStmts) -> bool:
    """Return whether anything below a body may change memory."""
    for stmt in statements(body):
        value = evaluated(stmt)
        if value is not None and effect_of(value) is Effect.WRITE:
            return True
    return False


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
