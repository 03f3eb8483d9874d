"""Nests: a parallel loop that is all another one does, so that threads can share the turns of both.

Its turns within one of the outer loop would run in order, which nobody may count on. Those that every turn writes the
same place in, or that do more than compute and store, stay in order all the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.op import Effect
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts
from tilewright.core.types import TileType
from tilewright.core.visitor import expressions, statements, variables
from tilewright.passes.launches import runs_side_by_side

PLACES = ("offset", "offsets", "indices", "dst_offset")
"""What says where an op writes."""


def nested(program: Program, loop: ForStmt) -> ForStmt | None:
    """Return the parallel loop that is all a parallel loop does, if each of its turns stores in a place of its own."""
    inner = loop.body.stmts[0] if len(loop.body) == 1 else None
    if not isinstance(inner, ForStmt) or not runs_side_by_side(inner):
        return None
    if loop.loop_var in variables([inner.start, inner.stop, inner.step]):
        return None
    return inner if _stores_apart(program, inner.body, [inner.loop_var]) else None


def _stores_apart(program: Program, body: SeqStmts, given: Iterable[Var]) -> bool:
    """Return whether what a body writes lies where variables say that differ from turn to turn."""
    moving = {*given}
    for stmt in statements(body):
        if isinstance(stmt, AssignStmt) and moving & {*variables([stmt.value])}:
            moving.add(stmt.var)
        if not all(_is_apart(program, expr, moving) for expr in expressions(stmt)):
            return False
    return True


def _is_apart(program: Program, expr: Expr, moving: set[Var]) -> bool:
    if isinstance(expr, Invoke):
        callee = program[expr.op.name]
        passed = zip(callee.params, expr.args, strict=True)
        return _stores_apart(program, callee.body, [param for param, arg in passed if moving & {*variables([arg])}])
    if not isinstance(expr, Call):
        return not isinstance(expr, Submit)
    spec, given = expr.op.spec, arguments(expr)
    if spec.effect is not Effect.WRITE or isinstance(expr.type, TileType):
        return not spec.is_fence
    places = [place for name in PLACES if isinstance(place := given.get(name), Expr)]
    return given.get("atomic") is not AtomicType.Add and bool(moving & {*variables(places)})
