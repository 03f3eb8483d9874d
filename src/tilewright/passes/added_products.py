"""Added products: `x + a @ b` as one op, so that what a product adds to is read where the product is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies, statements
from tilewright.dtypes import FP32, INT32
from tilewright.passes.few_rows import FEW_FLOATS, FEW_ROWS
from tilewright.passes.last_use import reads

FEW = {FP32: FEW_FLOATS, INT32: FEW_ROWS}
"""Rows of products that are added up piece by piece, by their sums: they had better not begin with something large."""


def run(program: Program) -> Program:
    """Return a lowered program whose products are added to what is added to them, where nobody else reads them."""
    functions = [_joined(function) for function in program.function_list]
    return program if functions == list(program.function_list) else program.with_functions(functions)


def _joined(function: Function) -> Function:
    if not any(_is(stmt, "tile.matmul") for stmt in statements(function.body)):
        return function
    counts, found = reads(function.body), dict[Var, Var]()
    for body in (function.body, *(inner for stmt in statements(function.body) for inner in bodies(stmt))):
        found |= _sums(body, counts)
    return function.with_body(_Joiner(function, found).body(function.body)) if found else function


def _is(stmt: Stmt, name: str) -> bool:
    return isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name == name


def _sums(body: SeqStmts, counts: Mapping[Var, int]) -> dict[Var, Var]:
    """Return the sums among some statements, and the product of the same body that each alone reads."""
    products = {stmt.var for stmt in body if isinstance(stmt, AssignStmt) and _is(stmt, "tile.matmul")}
    found: dict[Var, Var] = {}
    for stmt in body:
        if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, Call) or not _is(stmt, "tile.add"):
            continue
        added = [each for each in stmt.value.args if isinstance(each, Var) and each in products and counts[each] == 1]
        if added and len(set(stmt.value.args)) == 2 and all(_is_whole(each, stmt.var) for each in stmt.value.args):
            found[stmt.var] = added[-1]
    return found


def _is_whole(tile: Expr, like: Var) -> bool:
    """Return whether a tile surely is as large as another, and has sums for elements."""
    type_ = tile.type
    if not isinstance(type_, TileType) or not isinstance(like.type, TileType) or not isinstance(tile, Var):
        return False
    is_whole = type_.shape == type_.valid == like.type.shape  # which a product's has rows and columns
    return is_whole and type_.dtype in FEW and type_.shape[-2] > FEW[type_.dtype]


class _Joiner(Rewriter):
    """A function whose sums are products that add."""

    def __init__(self, function: Function, sums: Mapping[Var, Var]) -> None:
        super().__init__()
        every = statements(function.body)
        products = set(sums.values())
        self.sums = sums
        self.products = {s.var: s.value for s in every if isinstance(s, AssignStmt) and s.var in products}

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Leave a product until it is added to something."""
        if stmt.var in self.products:
            return ()
        if stmt.var not in self.sums:
            return super().assign(stmt)
        product, value = self.sums[stmt.var], stmt.value
        made = self.products[product]
        assert isinstance(value, Call) and isinstance(made, Call)
        (acc,) = (each for each in value.args if each is not product)
        given = arguments(made)
        lhs, rhs = (self.expr(each) for each in (given["lhs"], given["rhs"]) if isinstance(each, Expr))
        spec = OPS["tile.matmul_acc"].spec
        bound = {"acc": self.expr(acc), "lhs": lhs, "rhs": rhs, "a_trans": False, "b_trans": False, "init_cond": None}
        joined = call(spec, bound, made.span)
        return (AssignStmt(self.define(stmt.var, joined.type), joined, stmt.span),)
