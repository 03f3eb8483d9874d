"""Row shares: functions that several threads may run at once, each of them for some rows of every tile."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.op import Kind
from tilewright.core.stmt import ReturnStmt, Stmt
from tilewright.core.visitor import evaluated, expressions
from tilewright.passes.fusion import FusedGroup, Fusion


def is_divisible(plan: Fusion) -> bool:
    """Return whether a function is one loop over rows, none of which needs another."""
    groups = [group for group in plan.groups if group.stmts]
    if len(groups) != 1 or groups[0].turned or groups[0].rows[0] == 1:
        return False
    return all(_belongs(plan, groups[0], stmt) for stmt in plan.function.body)


def _belongs(plan: Fusion, group: FusedGroup, stmt: Stmt) -> bool:
    """Return whether a statement is part of a group, or everybody's; what asks which block it is in is neither."""
    if isinstance(stmt, ReturnStmt):
        return True
    value = evaluated(stmt)
    asked = [x for x in expressions(stmt) if isinstance(x, Call) and x.op.kind is Kind.TILE and x is not value]
    return not asked and (plan.at(stmt).floats or any(each is stmt for each in group.stmts))
