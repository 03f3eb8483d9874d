"""Identity: variables that always stand for a value known under another name.

A store returns the tensor it wrote, so its result is that tensor. A loop that hands on the very value it was given
carries nothing. A branch both of whose sides yield one value has not chosen.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Symbol, Var
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
from tilewright.core.types import TensorType
from tilewright.core.visitor import bodies


def written_tensor(value: Expr) -> Expr | None:
    """Return the tensor that a writing op returns, or None for other expressions."""
    if isinstance(value, Call) and value.op.spec.writes is not None and isinstance(value.type, TensorType):
        target = arguments(value)[value.op.spec.writes]
        return target if isinstance(target, Expr) else None
    return None


def viewed_tensor(value: Expr) -> Expr | None:
    """Return the tensor whose buffer a view or a write shares, or None for other expressions."""
    if isinstance(value, Call) and value.op.spec.alias is not None and isinstance(value.type, TensorType):
        target = arguments(value)[value.op.spec.alias]
        return target if isinstance(target, Expr) else None
    return None


class Identities:
    """What each variable of a body is always equal to, and which values its loops and branches need hand on."""

    def __init__(self, body: SeqStmts) -> None:
        self.same: dict[Var, Expr] = {}
        self.kept: dict[int, tuple[int, ...]] = {}
        self._body(body)

    def root(self, expr: Expr) -> Expr:
        """Return the oldest name of a value."""
        while isinstance(expr, Var) and expr in self.same:
            expr = self.same[expr]
        return expr

    def _body(self, body: SeqStmts) -> None:
        for stmt in body:
            if isinstance(stmt, AssignStmt):
                target = written_tensor(stmt.value)
                if target is not None:
                    self.same[stmt.var] = target
                continue
            for inner in bodies(stmt):
                self._body(inner)
            if isinstance(stmt, (ForStmt, WhileStmt)):
                self._loop(stmt)
            elif isinstance(stmt, IfStmt):
                self._branch(stmt)

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        """A carried value is its own start when every turn hands on what it got."""
        handed_on = [values for values in _exits(stmt.body, innermost=True) if values]
        constant: list[int] = []
        for position, arg in enumerate(stmt.iter_args):
            if not isinstance(arg.init, Absent) and all(self.root(v[position]) is arg.var for v in handed_on):
                self.same[arg.var] = arg.init
                self.same[stmt.return_vars[position]] = arg.init
                constant.append(position)
        self._keep(stmt, len(stmt.iter_args), constant)

    def _branch(self, stmt: IfStmt) -> None:
        yields = [b.stmts[-1].values for b in bodies(stmt) if b.stmts and isinstance(b.stmts[-1], YieldStmt)]
        if not stmt.return_vars or len(yields) < 2:
            return
        settled: list[int] = []
        for position, var in enumerate(stmt.return_vars):
            first, second = (self.root(values[position]) for values in yields)
            if isinstance(first, (Var, Const, Symbol)) and first == second:
                self.same[var] = first
                settled.append(position)
        self._keep(stmt, len(stmt.return_vars), settled)

    def _keep(self, stmt: Stmt, count: int, dropped: list[int]) -> None:
        if dropped:
            self.kept[id(stmt)] = tuple(i for i in range(count) if i not in dropped)


def _exits(body: SeqStmts, innermost: bool) -> Iterator[tuple[Expr, ...]]:
    """Yield the values handed on at each exit that belongs to the loop around `body`."""
    for stmt in body:
        if isinstance(stmt, (BreakStmt, ContinueStmt)) or (innermost and isinstance(stmt, YieldStmt)):
            yield stmt.values
        if not isinstance(stmt, (ForStmt, WhileStmt)):
            for inner in bodies(stmt):
                yield from _exits(inner, innermost=innermost and not isinstance(stmt, IfStmt))
