"""Directions: whether a function reads a tensor it is given, writes it, or both."""

from __future__ import annotations

from tilewright.core.build import arguments
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts
from tilewright.core.types import TensorType
from tilewright.core.visitor import children, statements, used
from tilewright.passes.identity import viewed_tensor


def direction_of(param: Var, body: SeqStmts) -> ParamDirection:
    """Return how a body uses a tensor, through its views too; what other functions do with it counts as both."""
    if not isinstance(param.type, TensorType):
        return ParamDirection.In
    reads, writes = False, False
    for stmt in statements(body):
        if isinstance(stmt, AssignStmt) and viewed_tensor(stmt.value) is param:
            through = direction_of(stmt.var, body)
            reads = reads or through is not ParamDirection.Out
            writes = writes or through is not ParamDirection.In
            continue
        value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
        for expr in used(stmt):
            if param not in _direct(expr):
                continue
            target = _target(expr) if expr is value else None
            writes = writes or target is param or _may_write(expr)
            reads = reads or _reads(expr, param, target)
    if writes:
        return ParamDirection.InOut if reads else ParamDirection.Out
    return ParamDirection.In


def _direct(expr: Expr) -> tuple[Expr, ...]:
    return (expr,) if isinstance(expr, Var) else children(expr)


def _target(expr: Expr) -> Expr | None:
    if isinstance(expr, Call) and expr.op.spec.writes is not None:
        target = arguments(expr)[expr.op.spec.writes]
        return target if isinstance(target, Expr) else None
    return None


def _may_write(expr: Expr) -> bool:
    """Return whether an expression hands a tensor on to something that may write it."""
    return isinstance(expr, (Invoke, Submit))


def _reads(expr: Expr, param: Var, target: Expr | None) -> bool:
    if isinstance(expr, Var):
        return False
    if target is not param or not isinstance(expr, Call):
        return True
    accumulates = getattr(dict(expr.attributes).get("atomic"), "name", "None_") != "None_"
    return accumulates or sum(arg is param for arg in expr.args) > 1
