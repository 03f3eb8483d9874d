"""Bodies: the blocks of loops and kernels, and what can leave them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.core.expr import Const
from tilewright.core.stmt import SCOPES, BreakStmt, ContinueStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.visitor import statements
from tilewright.frontend.state import YieldFrame
from tilewright.frontend.translator import Translator


def loop_body(
    t: Translator, nodes: Sequence[ast.stmt], word: str, carried: Sequence[str] = ()
) -> tuple[YieldFrame, SeqStmts]:
    """Translate the body of a loop that goes by some word and carries values by name."""
    frame = YieldFrame(is_loop=True, carried=tuple(carried), yields=_yields(nodes[-1]))
    defined = [(name, binding.value) for name, binding in t.scope.frames[-1].items()]
    t.yields.append(frame)
    t.loops.append(word)
    body = t.block(nodes, defined)
    t.loops.pop()
    t.yields.pop()
    return frame, body


def _yields(node: ast.stmt) -> bool:
    """Return whether a statement is `pl.yield_(...)`, with names or without."""
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) else None
    callee = value.func if isinstance(value, ast.Call) else None
    return "yield_" in (getattr(callee, "attr", ""), getattr(callee, "id", ""))


def kernel_body(t: Translator, nodes: Sequence[ast.stmt]) -> SeqStmts:
    """Translate the body of a kernel, which nothing inside can leave early."""
    t.loops.append("kernel")
    t.kernels.append(len(t.yields))
    body = t.block(nodes)
    t.kernels.pop()
    t.loops.pop()
    return body


def ends(body: SeqStmts) -> bool:
    """Return whether control never falls out of the end of a body."""
    return any(map(_ends, body.stmts))


def _ends(stmt: Stmt) -> bool:
    """Return whether control never comes to what follows a statement."""
    if isinstance(stmt, IfStmt):
        return stmt.else_body is not None and ends(stmt.then_body) and ends(stmt.else_body)
    if isinstance(stmt, SCOPES):
        return ends(stmt.body)
    if isinstance(stmt, WhileStmt):
        return isinstance(stmt.condition, Const) and stmt.condition.value is True and not _is_left(stmt.body)
    return isinstance(stmt, (ReturnStmt, BreakStmt, ContinueStmt))


def _is_left(body: SeqStmts) -> bool:
    """Return whether a `break` below a loop's body may leave that loop; one of a loop inside counts as well."""
    return any(isinstance(stmt, BreakStmt) for stmt in statements(body))
