"""Begun sums: `matmul` in one turn of a loop and `matmul_acc` in the others, as one op that is told which it is."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.build import arguments, call
from tilewright.core.expr import Call, Expr
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import TileType, is_fully_valid
from tilewright.core.visitor import statements


def begun_sums(function: Function) -> Function:
    """Return a function in which branches that either begin a sum or go on with it are products with `init_cond`."""
    if not any(isinstance(stmt, IfStmt) for stmt in statements(function.body)):
        return function
    return function.with_body(_Begun().body(function.body))


class _Begun(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.whole: set[Expr] = set()
        """What loops carry that has all of its elements before the first turn: a sum is valid where both of it are."""

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Note what a loop starts with."""
        types = {arg.var: arg.init.type for arg in stmt.iter_args}
        self.whole |= {var for var, type_ in types.items() if isinstance(type_, TileType) and is_fully_valid(type_)}
        return super().for_loop(stmt)

    def branch(self, stmt: IfStmt) -> Sequence[Stmt]:
        """Rewrite a branch between a product and a sum of the same operands."""
        first = _sole(stmt.then_body, "matmul")
        after = _sole(stmt.else_body or SeqStmts(), "matmul_acc")
        if first is None or after is None or len(stmt.return_vars) != 1:
            return super().branch(stmt)
        given, factors = arguments(after), arguments(first)
        alike = all(given[name] == factors[name] for name in ("lhs", "rhs"))
        if not alike or given["acc"] not in self.whole or len(after.args) > 3:
            return super().branch(stmt)
        bound = {name: self.expr(value) if isinstance(value, Expr) else value for name, value in given.items()}
        made = call(after.op.spec, {**bound, "init_cond": self.expr(stmt.condition)}, after.span)
        return (AssignStmt(self.define(stmt.return_vars[0], made.type), made, stmt.span),)


def _sole(body: SeqStmts, name: str) -> Call | None:
    """Return the call that is all of a branch, if it goes by a name."""
    if len(body) != 2:
        return None
    stmt, last = body
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    is_yielded = isinstance(last, YieldStmt) and isinstance(stmt, AssignStmt) and last.values == (stmt.var,)
    return value if is_yielded and isinstance(value, Call) and value.op.name == f"tile.{name}" else None
