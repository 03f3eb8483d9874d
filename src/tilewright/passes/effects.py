"""Effects: what an expression does besides giving a value."""

from __future__ import annotations

from tilewright.core.expr import Call, Expr, Invoke, Submit
from tilewright.core.op import Effect, Kind
from tilewright.core.stmt import SeqStmts
from tilewright.core.types import TileType
from tilewright.core.visitor import evaluated, statements


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
