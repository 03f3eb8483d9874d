"""Shares: parallel loops that only add rows to a tensor, divided by its rows instead of turns.

Turns that add to the same rows at the same time would have to wait for each other at every element. Where a loop does
nothing else, each thread makes all of its turns, and of each only what falls to its own rows: nobody meets anybody, and
rows are added up in the order of the turns. What every thread repeats is the reading of indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tilewright.core.build import arguments
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Expr, Invoke, Var
from tilewright.core.op import Kind
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.visitor import defined, statements, used, variables
from tilewright.ops.families import shaped
from tilewright.ops.places import takes_rows

Names: TypeAlias = "Mapping[Var, Expr | None]"
"""What the parameters of a function stand for in the loop that calls it."""
READS = ("tile.load", "tensor.dim", "tensor.read")
"""What turns may do besides."""


def shared_out(program: Program, loop: ForStmt) -> Var | None:
    """Return the tensor whose rows a parallel loop adds to, if it does nothing else; None for any other loop."""
    found = list(_updates(program, loop.body, None))
    targets = {target for target in found if target is not None}
    if None in found or len(targets) != 1:
        return None
    (target,) = targets
    own = {var for stmt in statements(loop.body) for var in defined(stmt)}
    return None if target in own else target


def _updates(program: Program, body: SeqStmts, names: Names | None) -> Iterator[Var | None]:
    """Yield the tensors that statements change by rows; None for anything that may not be done several times."""
    stmts = list(body)
    read = variables(expr for stmt in stmts for expr in used(stmt))
    for stmt in stmts:
        if isinstance(stmt, ForStmt) and stmt.kind is not ForKind.Parallel and not stmt.iter_args:
            yield from _updates(program, stmt.body, names)
        elif not isinstance(stmt, ReturnStmt):
            yield from _updates_of(program, stmt, read, names)


def _updates_of(program: Program, stmt: Stmt, read: Sequence[Var], names: Names | None) -> Iterator[Var | None]:
    value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
    if isinstance(value, Invoke):
        callee = program[value.op.name]
        given = {p: _seen(a, names) for p, a in zip(callee.params, value.args, strict=True)}
        yield from _updates(program, callee.body, given)
    elif not isinstance(value, Call):
        yield None
    elif value.op.spec.is_atomic:
        is_read = isinstance(stmt, AssignStmt) and stmt.var in read
        yield None if is_read else _target(value, names)
    elif not (value.op.kind is Kind.SCALAR or value.op.spec.is_view or value.op.name in READS):
        yield None


def _target(call: Call, names: Names | None) -> Var | None:
    """Return the tensor that an update changes by rows, as the loop knows it."""
    given = arguments(call)
    x, axis = given["x"], given["axis"]
    assert isinstance(x, Var) and (axis is None or isinstance(axis, int))
    found = _seen(x, names)
    return found if takes_rows(shaped(x), axis) and isinstance(found, Var) else None


def _seen(value: Expr, names: Names | None) -> Expr | None:
    """Return what a value is called in the loop: of what a called function makes, nothing is known there."""
    return value if names is None else names.get(value) if isinstance(value, Var) else None
