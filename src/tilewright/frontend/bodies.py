"""Bodies: the blocks of loops and kernels."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.core.stmt import SeqStmts
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
