"""Skipped tasks: what names stand for after a body that did not run.

A write gives back the tensor it writes, so its result is that tensor as it was; everything else has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tilewright.core.expr import Expr, Invoke, Submit, TupleGetItem, Var
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from tilewright.core.visitor import bodies
from tilewright.passes.identity import written_tensor

Value: TypeAlias = Any
NOTHING: Value = object()
"""What a variable is handed that has no value yet."""


class Skipped:
    """A body that is passed over; `bind` learns what its variables stand for."""

    def __init__(
        self, functions: Mapping[str, Function], values: Mapping[Var, Value], bind: Callable[[Var, Value], None]
    ) -> None:
        self.functions = functions
        self.values = values
        self.bind = bind

    def body(self, body: SeqStmts) -> tuple[Value, ...]:
        """Pass over a body; return what it hands on."""
        for stmt in body:
            if isinstance(stmt, (ReturnStmt, YieldStmt)):
                return tuple(self._kept(value) for value in stmt.values)
            self._stmt(stmt)
        return ()

    def _stmt(self, stmt: Stmt) -> None:
        match stmt:
            case AssignStmt():
                self.bind(stmt.var, self._kept(stmt.value))
            case ForStmt() | WhileStmt():
                starts = [self._kept(arg.init) for arg in stmt.iter_args]
                for arg, start in zip(stmt.iter_args, starts, strict=True):
                    self.bind(arg.var, start)
                self.body(stmt.body)
                for var, start in zip(stmt.return_vars, starts, strict=True):
                    self.bind(var, start)
            case IfStmt():
                yielded = [self.body(inner) for inner in bodies(stmt)]
                for var, *given in zip(stmt.return_vars, *(values for values in yielded if values), strict=True):
                    self.bind(var, next((value for value in given if value is not NOTHING), NOTHING))
            case _:
                for inner in bodies(stmt):
                    self.body(inner)

    def _kept(self, expr: Expr) -> Value:
        """Return the tensor that an expression gives whether or not it is evaluated, or nothing."""
        target = written_tensor(expr)
        if target is not None:
            return self._kept(target)
        match expr:
            case Var():
                return self.values.get(expr, NOTHING)
            case TupleGetItem():
                whole = self._kept(expr.value)
                return NOTHING if whole is NOTHING else whole[expr.index]
            case Invoke() | Submit():
                results = results_of(self.functions, expr, [self._kept(arg) for arg in expr.args])
                return results[0] if isinstance(expr, Invoke) and len(results) == 1 else (*results, NOTHING)
            case _:
                return NOTHING


def results_of(functions: Mapping[str, Function], call: Invoke | Submit, args: list[Value]) -> tuple[Value, ...]:
    """Return what a call gives back of its arguments without being made."""
    function = functions[call.op.name]
    values: dict[Var, Value] = dict(zip(function.params, args, strict=True))
    return Skipped(functions, values, values.__setitem__).body(function.body)
