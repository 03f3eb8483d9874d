"""Chips: parts of a host function that run on a rank, written in place, become functions that are dispatched to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.core.enums import FunctionType, Level
from tilewright.core.expr import Expr, Invoke, integer
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, HierarchyScopeStmt, InCoreScopeStmt, Stmt
from tilewright.core.visitor import statements
from tilewright.passes import ssa
from tilewright.passes.outline import Outliner


def run(program: Program) -> Program:
    """Turn every `pl.at(level=pl.Level.CHIP)` of a host function into a function for rank 0."""
    if not any(_has_chips(function) for function in program.entries):
        return program
    taken = set(program.function_names)
    result: list[Function] = []
    for function in ssa.run(program).function_list:
        if _has_chips(function):
            outliner = _Chips(function, taken)
            body = outliner.body(function.body)
            result += [*outliner.kernels, function.with_body(body)]
        else:
            result.append(function)
    return program.with_functions(result)


def _has_chips(function: Function) -> bool:
    return function.level is Level.HOST and any(isinstance(s, HierarchyScopeStmt) for s in statements(function.body))


class _Chips(Outliner):
    """Takes the scopes of chips out of a host function; what is inside them stays."""

    def scope(self, stmt: Any) -> Sequence[Stmt]:
        """Replace the scope of a chip by its dispatch."""
        if not isinstance(stmt, HierarchyScopeStmt) or stmt.level is not Level.CHIP:
            return super().scope(stmt)
        whole = InCoreScopeStmt(stmt.body, stmt.name_hint, span=stmt.span)
        return [_on_first(s) for s in self.dispatch(whole, stmt.body, FunctionType.Orchestration, "chip", None)]


def _on_first(stmt: Stmt) -> Stmt:
    if isinstance(stmt, EvalStmt):
        return replace(stmt, expr=_placed(stmt.expr))
    return replace(stmt, value=_placed(stmt.value)) if isinstance(stmt, AssignStmt) else stmt


def _placed(call: Expr) -> Expr:
    return replace(call, device=integer(0)) if isinstance(call, Invoke) else call
