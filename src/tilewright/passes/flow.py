"""Flow: the values that each variable of a body may stand for.

One walk follows values through assignments, loops, branches and early exits until nothing changes. What an expression
hands on as it is, a subclass says: the very value (`identity`), or a part of its memory (`aliases`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tilewright.core.expr import ABSENT, Absent, Const, Expr, Symbol, Var
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.visitor import bodies

Values: TypeAlias = frozenset[Expr]
"""Names and numbers that a value may go by; `ABSENT` stands for one that has none."""

_NAMELESS: Values = frozenset((ABSENT,))


class Flow:
    """What the variables of a body may stand for; one that nothing is known of stands for itself."""

    def __init__(self, body: SeqStmts) -> None:
        self.known: dict[Var, Values] = {}
        self._read: set[Var] = set()
        self._settled = False
        while not self._settled:
            self._settled = True
            self._body(body, (), ())

    def follows(self, var: Var) -> bool:
        """Return whether a variable is of interest."""
        return True

    def handed_on(self, expr: Expr) -> Sequence[Expr] | None:
        """Return the expressions whose values a compound one may be, or None for one that makes its own."""
        raise NotImplementedError

    def values(self, expr: Expr) -> Values:
        """Return what an expression may stand for."""
        if isinstance(expr, Var):
            self._read.add(expr)
            return self.known.get(expr) or frozenset((expr,))
        if isinstance(expr, (Const, Symbol, Absent)):
            return frozenset((expr,))
        handed_on = self.handed_on(expr)
        return _NAMELESS if handed_on is None else frozenset[Expr]().union(*map(self.values, handed_on))

    def _body(self, body: SeqStmts, loop: Sequence[Var], branch: Sequence[Var]) -> None:
        for stmt in body:
            self._stmt(stmt, loop, branch)

    def _stmt(self, stmt: Stmt, loop: Sequence[Var], branch: Sequence[Var]) -> None:
        """Bind what a statement binds; an exit hands its values on to what `loop` carries or `branch` gives."""
        match stmt:
            case AssignStmt():
                if self.follows(stmt.var):
                    values = self.values(stmt.value)
                    self._learn(stmt.var, values - _NAMELESS | {stmt.var} if ABSENT in values else values)
            case ForStmt() | WhileStmt():
                carried = [arg.var for arg in stmt.iter_args]
                self._bind(carried, [arg.init for arg in stmt.iter_args])
                self._body(stmt.body, carried, carried)
                self._bind(stmt.return_vars, carried)
            case IfStmt():
                for inner in bodies(stmt):
                    self._body(inner, loop, stmt.return_vars)
                if sum(bool(b.stmts) and isinstance(b.stmts[-1], YieldStmt) for b in bodies(stmt)) < 2:
                    for var in filter(self.follows, stmt.return_vars):
                        self._learn(var, frozenset((var,)))  # what one side binds is not known outside
            case YieldStmt():
                self._bind(branch, stmt.values)
            case BreakStmt() | ContinueStmt():
                self._bind(loop, stmt.values)
            case _:
                for inner in bodies(stmt):
                    self._body(inner, loop, branch)

    def _bind(self, variables: Sequence[Var], values: Sequence[Expr]) -> None:
        for var, value in zip(variables, values, strict=False):
            if self.follows(var):
                self._learn(var, self.values(value))

    def _learn(self, var: Var, values: Values) -> None:
        """Let a variable stand for more; whoever has read it before has to look again."""
        before = self.known.get(var)
        if before is None or not values <= before:
            self.known[var] = values if before is None else before | values
            self._settled = self._settled and var not in self._read
