"""Roots: which tensors of a function may share memory."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Absent, Call, Expr, Invoke, MakeTuple, Submit, TupleGetItem, Var
from tilewright.core.op import Effect
from tilewright.core.program import Function
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import TensorType, TupleType
from tilewright.core.visitor import bodies, children


class Roots:
    """The variables of a function in classes: tensors of different classes never share memory.

    Views, carried and yielded values and the results of calls belong to what they may be made of. Parameters are
    classes of their own until a caller that passes one buffer twice joins them.
    """

    def __init__(self, function: Function) -> None:
        self.parents: dict[Var, Var] = {}
        self._made: list[tuple[Var, Call]] = []
        self._leaving: list[Var] = []
        self._body(function.body, None, None)
        left = {self.of(var) for var in self._leaving}
        leaving = {id(call) for var, call in self._made if self.of(var) in left}
        # copies of a statement share its call: all of their buffers have to stay
        self._local = frozenset(id(call) for _, call in self._made) - leaving

    def is_local(self, call: Call) -> bool:
        """Return whether the buffer a call makes is gone when the statements around it end."""
        return id(call) in self._local

    def of(self, var: Var) -> Var:
        """Return the variable that stands for a class."""
        while var in self.parents:
            var = self.parents[var]
        return var

    def join(self, var: Var, expr: Expr) -> None:
        """Let a variable and the tensors of an expression share a class."""
        for other in _tensors(expr):
            a, b = self.of(var), self.of(other)
            if a is not b:
                self.parents[a] = b

    def _join_all(self, variables: Sequence[Var], values: Sequence[Expr]) -> None:
        for var, value in zip(variables, values, strict=False):
            if _holds_tensors(var):
                self._leaving.append(var)
                self.join(var, value)

    def _body(self, body: SeqStmts, loop: Sequence[Var] | None, branch: Sequence[Var] | None) -> None:
        for stmt in body:
            self._stmt(stmt, loop, branch)

    def _stmt(self, stmt: Stmt, loop: Sequence[Var] | None, branch: Sequence[Var] | None) -> None:
        match stmt:
            case AssignStmt():
                if _holds_tensors(stmt.var):
                    self.join(stmt.var, stmt.value)
                if isinstance(stmt.value, Call) and stmt.value.op.spec.effect is Effect.ALLOCATE:
                    self._made.append((stmt.var, stmt.value))
            case ReturnStmt():
                self._leaving += _tensors_of(stmt.values)
            case ForStmt() | WhileStmt():
                carried = [arg.var for arg in stmt.iter_args]
                self._join_all(carried, [arg.init for arg in stmt.iter_args])
                self._join_all(stmt.return_vars, carried)
                self._body(stmt.body, carried, carried)
            case IfStmt():
                for body in bodies(stmt):
                    self._body(body, loop, stmt.return_vars)
            case YieldStmt():
                self._join_all(branch or (), stmt.values)
            case BreakStmt() | ContinueStmt():
                self._join_all(loop or (), stmt.values)
            case _:
                for body in bodies(stmt):
                    self._body(body, loop, branch)


def _holds_tensors(var: Var) -> bool:
    return isinstance(var.type, (TensorType, TupleType))


def _tensors(expr: Expr) -> list[Var]:
    """Return the variables whose memory the value of an expression may be."""
    match expr:
        case Var():
            return [expr] if _holds_tensors(expr) else []
        case Call():
            return _tensors_of(expr.args) if expr.op.spec.alias else []
        case Invoke() | Submit() | MakeTuple() | TupleGetItem():
            return _tensors_of(children(expr))
        case Absent() | _:
            return []


def _tensors_of(exprs: Sequence[Expr]) -> list[Var]:
    return [var for expr in exprs for var in _tensors(expr)]
