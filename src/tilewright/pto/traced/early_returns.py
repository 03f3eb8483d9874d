"""Early returns: branches that a function ends with, since it returns from one of their sides.

What follows such a branch stands on each side that goes on, so both sides end the function, and give what it returns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tilewright.errors import NestingError, ReturnMismatchError
from tilewright.pto.module import Value
from tilewright.pto.traced.sides import Given, side
from tilewright.pto.traced.tracer import Returned, Tracer
from tilewright.pto.traced.values import describe

MOST = 4
"""How many such branches may follow each other of which both sides go on: each doubles what follows."""


def ends_with(t: Tracer, node: ast.If) -> bool:
    """Return whether a branch returns from one of its sides, and stands where the function can end with it."""
    return t.bodies == t.exits + 1 and any(isinstance(each, ast.Return) for each in _inside(node))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements inside another one, but for those of functions that it defines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not isinstance(child, ast.FunctionDef):
            yield child
            yield from _inside(child)


def _returns(body: Sequence[ast.stmt]) -> bool:
    """Return whether statements surely return."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return)


def leave(t: Tracer, condition: Value, node: ast.If) -> None:
    """Trace a branch with which the function ends."""
    before, rest, doubles = dict(t.names), t.rest, not any(map(_returns, (node.body, node.orelse)))
    if doubles and t.doubled == MOST:
        message = f"what follows this branch would be written more than {1 << MOST} times"
        help = "return at the end of the function, a value that branches choose"
        raise t.error(NestingError, node, message, help=help)
    t.exits, t.doubled = t.exits + 1, t.doubled + doubles
    then, otherwise = (side(t, [*body, *rest], before) for body in (node.body, node.orelse))
    t.exits, t.doubled = t.exits - 1, t.doubled - doubles
    t.names = before
    lhs, rhs = (None if each.returned is None else each.returned.value for each in (then, otherwise))
    given = Given(t, node)
    if (lhs is None) != (rhs is None) or not given.meets(lhs, rhs):
        shown = " and ".join("nothing" if value is None else describe(value) for value in (lhs, rhs))
        help = "return values of one type everywhere, or nothing"
        raise t.error(ReturnMismatchError, node, f"paths through this branch return {shown}", help=help)
    value = None if lhs is None else given.joined(lhs, rhs, "returned")
    given.write(condition, (then, otherwise))
    t.returned = Returned(value, t.span(node))
