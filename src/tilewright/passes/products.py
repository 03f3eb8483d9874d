"""Products among the ops of a kernel: which they are, and what their right operands are read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements, used, variables
from tilewright.dtypes import BF16, FP16, FP32, INT8, UINT8, DataType

PRODUCTS = ("matmul", "batch_matmul", "gemv")
SUMS = ("matmul_acc", "batch_matmul_acc", "gemv_acc")
BIASED = ("matmul_bias", "gemv_bias")

EXACT = {FP32: (INT8, UINT8, FP16, BF16), FP16: (INT8, UINT8), BF16: (INT8, UINT8)}
"""Which elements keep their value as others."""


def read_from(made: Mapping[Var, Call], operand: Var) -> Var | None:
    """Return the loaded tile that an operand is, or is a cast of that changes no value."""
    call = made.get(operand)
    source = arguments(call)["x"] if call is not None and call.op.spec.name == "cast" else operand
    if not isinstance(source, Var) or source not in made or made[source].op.spec.name != "load":
        return None
    return source if source is operand or _dtype(source) in EXACT.get(_dtype(operand), ()) else None


def _dtype(tile: Var) -> DataType:
    assert isinstance(tile.type, TileType)
    return tile.type.dtype


def read_casts(function: Function) -> Function:
    """Return a function whose products of few rows convert the right matrix as it comes, instead of a copy of it.

    Only casts that change no value: a product of small integers as floats is the product of those floats. What is left
    is a product of two element types, which the language does not have; native code does.
    """
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
