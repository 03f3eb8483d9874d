"""Sums of products: products added to one accumulator in a row, which can stay in registers over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies
from tilewright.passes.computed_operands import computed_operands
from tilewright.passes.last_use import reads
from tilewright.records import record

MOST_BYTES = 1 << 18
"""How much the right operands of a sum may take in all: they are read again for every few rows."""


@record
class Term:
    """A product that is added to an accumulator."""

    call: Call
    acc: Var
    total: Var
    nbytes: int


def summed_later(function: Function) -> frozenset[int]:
    """Return the products, by identity, that the next one can add together with its own."""
    return frozenset(_found(function.body, reads(function.body), computed_operands(function)))


def _found(body: SeqStmts, counts: Counter[Var], computed: frozenset[Var]) -> Iterator[int]:
    last: Term | None = None
    nbytes = 0
    for stmt in body:
        for inner in bodies(stmt):
            yield from _found(inner, counts, computed)
        term = _term(stmt, computed)
        if term is None:
            last = last if _only_reads(stmt, computed) else None
            continue
        nbytes += term.nbytes
        if last is not None and term.acc is last.total and counts[term.acc] == 1 and nbytes <= MOST_BYTES:
            yield id(last.call)
        else:
            nbytes = term.nbytes
        last = term


def _term(stmt: Stmt, computed: frozenset[Var]) -> Term | None:
    """Return what a statement adds to an accumulator: a product of two matrices that have names."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(stmt, AssignStmt) or not isinstance(call, Call) or call.op.name != "tile.matmul_acc":
        return None
    given = arguments(call)
    acc, right = given["acc"], given["rhs"]
    if not isinstance(acc, Var) or not isinstance(right, Var) or not isinstance(right.type, TileType):
        return None
    starts_anew = not isinstance(given.get("init_cond"), (Absent, type(None)))
    return None if starts_anew else Term(call, acc, stmt.var, 0 if right in computed else right.type.nbytes)


def _only_reads(stmt: Stmt, computed: frozenset[Var]) -> bool:
    """Return whether a statement makes a view, loads a tile, computes a number or nothing yet: what is read stays."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(stmt, AssignStmt) or not isinstance(call, Call):
        return False
    return stmt.var in computed or call.op.kind is Kind.SCALAR or call.op.name == "tile.load" or call.op.spec.is_view
