"""Multiplied casts: tiles rounded to bfloat16 as left operands of products, and for nobody else.

The weights of attention are such. They are rounded right where they are computed: what is made row by row then goes
from registers to where the product reads it. Products of pairs take subnormal bfloat16 numbers for zero, so whoever
rounds may do that already.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements, used, variables
from tilewright.dtypes import BF16, FP32

_PRODUCTS = ("tile.matmul", "tile.matmul_acc")


def run(program: Program) -> Program:
    """Return a lowered program whose multiplied casts follow what they round, in the same body."""
    functions = [_early(function) for function in program.function_list]
    return program if functions == list(program.function_list) else program.with_functions(functions)


def multiplied_casts(function: Function) -> list[Stmt]:
    """Return the casts of a function whose results are left operands of products alone."""
    every = statements(function.body)
    found = {s.var: s for s in every if isinstance(s, AssignStmt) and _rounds(s) is not None}
    for stmt in every if found else ():
        for var in variables(used(stmt)):
            if not _multiplies(stmt, var):
                found.pop(var, None)
    return [*found.values()]


def _rounds(stmt: AssignStmt) -> Var | None:
    """Return the tile of floats that a statement rounds to bfloat16 numbers."""
    value = stmt.value
    if not isinstance(value, Call) or value.op.name != "tile.cast":
        return None
    source, type_ = value.args[0], value.type
    if not isinstance(source, Var) or not isinstance(source.type, TileType) or not isinstance(type_, TileType):
        return None
    return source if (source.type.dtype, type_.dtype) == (FP32, BF16) else None


def _multiplies(stmt: Stmt, var: Var) -> bool:
    """Return whether a statement reads a tile as the left operand of a product, and in no other way."""
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(value, Call) or value.op.name not in _PRODUCTS:
        return False
    given = arguments(value)
    return given["lhs"] is var and given["rhs"] is not var and given.get("acc") is not var


def _early(function: Function) -> Function:
    casts = multiplied_casts(function)
    return function.with_body(_Mover(casts).body(function.body)) if casts else function


class _Mover(Rewriter):
    """Bodies in which casts follow what they round."""

    def __init__(self, casts: Sequence[Stmt]) -> None:
        super().__init__()
        self.casts = casts

    def body(self, body: SeqStmts) -> SeqStmts:
        """Put each cast behind the statement that makes its operand."""
        made = {stmt.var for stmt in body if isinstance(stmt, AssignStmt)}
        after: dict[Var, list[Stmt]] = {}
        rest: list[Stmt] = []
        for stmt in body:
            source = _rounds(stmt) if isinstance(stmt, AssignStmt) and stmt in self.casts else None
            (after.setdefault(source, []) if source in made and source is not None else rest).append(stmt)
        moved = [each for stmt in rest for each in (stmt, *_behind(stmt, after))]
        return super().body(SeqStmts(tuple(moved)) if moved != [*body] else body)


def _behind(stmt: Stmt, after: dict[Var, list[Stmt]]) -> list[Stmt]:
    return after.get(stmt.var, []) if isinstance(stmt, AssignStmt) else []
