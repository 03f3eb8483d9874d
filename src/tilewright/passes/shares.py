"""Shares: parallel loops that only add rows to tensors, divided by rows instead of turns.

Turns that add to the same rows at the same time would have to wait for each other at every element. Where a loop does
nothing else, each thread makes all of its turns, and of each only what falls to its own rows: nobody meets anybody, and
rows are added up in the order of the turns. What every thread repeats is the reading of indices.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.build import arguments
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Expr, Invoke, Var
from tilewright.core.op import Kind
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.visitor import used, variables
from tilewright.ops.families import shaped
from tilewright.ops.places import takes_rows

READS = ("tile.load", "tensor.dim", "tensor.read")


def is_shared_out(program: Program, loop: ForStmt) -> bool:
    """Return whether the turns of a parallel loop do nothing but add to rows what they have loaded."""
    found = list(_calls(program, loop.body))
    return any(call is not None and call.op.spec.is_atomic for call in found) and all(map(_fits, found))


def _fits(call: Call | None) -> bool:
    if call is None:
        return False
    spec = call.op.spec
    if not spec.is_atomic:
        return call.op.kind is Kind.SCALAR or spec.is_view or call.op.name in READS
    given = arguments(call)
    x, axis = given["x"], given["axis"]
    assert isinstance(x, Expr) and (axis is None or isinstance(axis, int))
    return takes_rows(shaped(x), axis)


def _calls(program: Program, body: SeqStmts) -> Iterator[Call | None]:
    """Yield the ops of statements, and of functions that they call; None for anything that does something else."""
    stmts = list(body)
    read = variables(expr for stmt in stmts for expr in used(stmt))
    for stmt in stmts:
        if isinstance(stmt, ForStmt) and stmt.kind is not ForKind.Parallel and not stmt.iter_args:
            yield from _calls(program, stmt.body)
        elif not isinstance(stmt, ReturnStmt):
            yield from _calls_of(program, stmt, read)


def _calls_of(program: Program, stmt: Stmt, read: list[Var]) -> Iterator[Call | None]:
    value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
    if isinstance(value, Invoke):
        yield from _calls(program, program[value.op.name].body)
    elif not isinstance(value, Call) or (value.op.spec.is_atomic and isinstance(stmt, AssignStmt) and stmt.var in read):
        yield None
    else:
        yield value
