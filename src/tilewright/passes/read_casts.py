"""Casts while reading: products of few rows that convert the right matrix as it comes, instead of a copy of it.

Only casts that change no value: a product of small integers as floats is the product of those floats. What is left is a
product of two element types, which the language does not have; native code does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.visitor import statements, used, variables
from tilewright.passes.products import PRODUCTS, SUMS, read_from


def read_casts(function: Function) -> Function:
    """Return a function whose products read what is now cast for them alone."""
    every = list(statements(function.body))
    reads = Counter(variables(expr for stmt in every for expr in used(stmt)))
    made = {stmt.var: stmt.value for stmt in every if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)}
    sources: dict[Var, Var] = {}
    for call in made.values():
        cast = arguments(call)["rhs"] if call.op.spec.name in (*PRODUCTS, *SUMS) else None
        source = read_from(made, cast) if isinstance(cast, Var) and reads[cast] == 1 else None
        if isinstance(cast, Var) and source is not None and source is not cast and reads[source] == 1:
            sources[cast] = source
    return function.with_body(_Reading(sources).body(function.body)) if sources else function


class _Reading(Rewriter):
    """Leaves casts out, and gives products what was cast."""

    def __init__(self, sources: dict[Var, Var]) -> None:
        super().__init__()
        self.sources = sources

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Leave a cast out."""
        if stmt.var in self.sources:
            return ()
        return super().assign(stmt)

    def expr(self, expr: Expr) -> Expr:
        """Give a product what was cast; its type is what it was."""
        if isinstance(expr, Call) and any(isinstance(arg, Var) and arg in self.sources for arg in expr.args):
            args = tuple(self.sources.get(arg, arg) if isinstance(arg, Var) else arg for arg in expr.args)
            return Call(expr.op, args, expr.attributes, expr.type, expr.span)
        return super().expr(expr)
