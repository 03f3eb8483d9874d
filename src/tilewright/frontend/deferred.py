"""Deferred waits: kernels that end at once, whose task is done when a signal has come.

The wait stands where the first task begins that depends on it, or where the function ends: what comes before may be
what a peer needs to send that signal. Inside loops and branches it stands where it was written.
"""

from __future__ import annotations

import ast

from tilewright.core.build import arguments, call
from tilewright.core.enums import Level
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import OPS
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.errors import DirectiveError
from tilewright.frontend.options import Options
from tilewright.frontend.translator import Translator

MOST = 64
"""How many signals one task waits for."""
HELP = "with pl.at(level=pl.Level.CORE_GROUP) as tid: pld.system.defer_wait(...), and deps=[tid] where it matters"


def has_deferred(body: SeqStmts) -> bool:
    """Return whether a kernel defers waits."""
    return any(_is_deferred(stmt) for stmt in body)


def defer(t: Translator, node: ast.With, options: Options, body: SeqStmts, task: Var | None) -> None:
    """Let the waits of a kernel stand where its task matters; DirectiveError where it does anything else."""
    waits = [stmt for stmt in body if _is_deferred(stmt)]
    others = [s for s in body if not _is_deferred(s) and not (isinstance(s, AssignStmt) and _is_number(s.value))]
    if others or task is None or "allow_early_resolve" in options or len(waits) > MOST:
        message = f"defer_wait stands in a kernel of its own that has a name, up to {MOST} of them"
        raise t.error(DirectiveError, node, message, help=HELP)
    for stmt in body:
        if not _is_deferred(stmt):
            t.emit(stmt)
    t.emit(AssignStmt(task, call(OPS["system.task_invalid"].spec, {}, t.span(node)), t.span(node)))
    if t.loops or t.yields:
        _wait(t, waits)
    else:
        t.deferred[id(task)] = waits


def settle(t: Translator, tasks: tuple[Expr, ...] | None = None) -> None:
    """Write the waits of tasks that another one depends on, or all that are left."""
    wanted = [*t.deferred] if tasks is None else [id(task) for task in tasks if id(task) in t.deferred]
    for task in wanted:
        _wait(t, t.deferred.pop(task))


def check_deferred(t: Translator, node: ast.Call) -> None:
    """Raise where a wait is deferred that no task stands for."""
    if not t.kernels or t.level is Level.HOST:
        raise t.error(DirectiveError, node, "defer_wait stands in a kernel of its own that has a name", help=HELP)


def _wait(t: Translator, waits: list[Stmt]) -> None:
    for stmt in waits:
        assert isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call)
        t.emit(EvalStmt(call(OPS["distributed.wait"].spec, arguments(stmt.expr), stmt.span), stmt.span))


def _is_deferred(stmt: Stmt) -> bool:
    return isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call) and stmt.expr.op.name == "distributed.defer_wait"


def _is_number(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.name in ("distributed.rank", "distributed.nranks")
