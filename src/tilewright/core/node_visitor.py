"""The visitor: a walk over the IR that a subclass interrupts where it likes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.core.expr import Expr
from tilewright.core.program import Function, Program
from tilewright.core.stmt import SeqStmts
from tilewright.core.visitor import bodies, children, defined, used


class IRVisitor:
    """A walk over the IR that calls `visit_<ClassName>` where a subclass has one, and goes on below."""

    def visit(self, node: Any) -> None:
        """Visit one node: its own method if there is one, else everything below it."""
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is not None:
            method(node)
        else:
            self.generic_visit(node)

    def generic_visit(self, node: Any) -> None:
        """Visit everything directly below a node."""
        for child in _below(node):
            self.visit(child)


def _below(node: Any) -> Iterable[Any]:
    if isinstance(node, Program):
        return node.function_list
    if isinstance(node, Function):
        return (*node.params, node.body)
    if isinstance(node, SeqStmts):
        return node.stmts
    if isinstance(node, Expr):
        return children(node)
    return (*defined(node), *used(node), *bodies(node))
