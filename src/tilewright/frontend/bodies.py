"""Bodies: the blocks of loops and kernels, and what can leave them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.core.stmt import SeqStmts
from tilewright.frontend.state import YieldFrame
from tilewright.frontend.translator import Translator


def loop_body(t: Translator, nodes: Sequence[ast.stmt], word: str, carries: int = 0) -> tuple[YieldFrame, SeqStmts]:
    """Translate the body of a loop that goes by some word and carries so many values."""
    frame = YieldFrame(is_loop=True, carries=carries)
    defined = [(name, binding.value) for name, binding in t.scope.frames[-1].items()]
    t.yields.append(frame)
    t.loops.append(word)
    body = t.block(nodes, defined)
    t.loops.pop()
    t.yields.pop()
    return frame, body


def kernel_body(t: Translator, nodes: Sequence[ast.stmt]) -> SeqStmts:
    """Translate the body of a kernel, which nothing inside can leave early."""
    t.loops.append("kernel")
    t.kernels.append(len(t.yields))
    body = t.block(nodes)
    t.kernels.pop()
    t.loops.pop()
    return body
