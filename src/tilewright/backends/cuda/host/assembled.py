"""Assembled tensors: those that a kernel makes, fills, and copies as a whole into another, which is filled instead."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import defined, statements, used, variables
from tilewright.passes.disjoint_tensors import Apart
from tilewright.passes.store_targets import Target, target_of
from tilewright.records import record


@record
class _Copy:
    """Where statements make a tensor, where they copy it, and what into."""

    made: Var
    start: int
    end: int
    target: Var


def in_place(program: Program, function: Function) -> SeqStmts:
    """Return the body of a kernel that fills no tensor only to copy it into one that nothing touches meanwhile."""
    apart, stmts = Apart(program), function.body.stmts
    copies = [
        copy
        for start, stmt in enumerate(stmts)
        if (copy := _copy(function, start, stmt)) is not None
        and all(apart.are(function.name, copy.target, each) for each in _touched(copy, stmts))
    ]
    dropped = {place for copy in copies for place in (copy.start, copy.end)}
    kept = [stmt for place, stmt in enumerate(stmts) if place not in dropped]
    return Rewriter({copy.made: copy.target for copy in copies}).body(SeqStmts(tuple(kept)))


def _copy(function: Function, start: int, stmt: Stmt) -> _Copy | None:
    """Return the copy of a tensor that a statement makes, where that is the last that is done with it."""
    if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, Call) or stmt.value.op.name != "tensor.create":
        return None
    stmts = function.body.stmts
    end = max((place for place, each in enumerate(stmts) if stmt.var in _named([each])), default=start)
    target = target_of(stmts[end], stmt.var)
    there = {*function.params, *(var for each in stmts[:start] for var in defined(each))}
    if isinstance(stmts[end], AssignStmt) or target is None or target.tensor not in there or not _fits(stmt, target):
        return None
    return _Copy(stmt.var, start, end, target.tensor)


def _fits(made: AssignStmt, target: Target) -> bool:
    """Return whether a tensor is as large as the one that is copied into it, and is made without elements."""
    of, into = made.var.type, target.tensor.type
    is_first = all(isinstance(each, Const) and each.value == 0 for each in target.offsets.elements)
    begins = isinstance(made.value, Call) and arguments(made.value).get("init_value") is None
    assert isinstance(of, TensorType)
    assert isinstance(into, TensorType)
    return is_first and begins and (of.shape, of.valid, of.dtype) == (into.shape, into.valid, into.dtype)


def _touched(copy: _Copy, stmts: Sequence[Stmt]) -> set[Expr]:
    """Return the other tensors that are named while one is filled."""
    named = _named(stmts[copy.start + 1 : copy.end]) - {copy.made}
    return {var for var in named if isinstance(var.type, TensorType)}


def _named(stmts: Sequence[Stmt]) -> set[Var]:
    return {var for stmt in statements(SeqStmts(tuple(stmts))) for var in variables(used(stmt))}
