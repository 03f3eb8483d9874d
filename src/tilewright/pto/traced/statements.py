"""Statements: assignments, calls for their effect, assertions and returns."""

from __future__ import annotations

import ast

from tilewright.errors import NotStaticError, OperandError, StaticAssertionError, UnsupportedFeatureError
from tilewright.frontend.walk.statements import bind_target
from tilewright.pto.module import Value
from tilewright.pto.traced.tracer import Returned, Tracer
from tilewright.pto.traced.values import describe


def bind(t: Tracer, target: ast.Name, value: object, source: ast.expr) -> None:
    """Let a variable stand for a value."""
    if value is None and isinstance(source, ast.Call):
        help = "tile ops write into their last operand: use that"
        raise t.error(OperandError, source, f"`{ast.unparse(source.func)}` gives no value", help=help)
    t.let(target.id, value, target)


def annotated(t: Tracer, node: ast.AnnAssign) -> None:
    """Trace an assignment; annotations are for type checkers."""
    if node.value is not None:
        bind_target(t, node.target, t.evaluate(node.value), node.value)


def assert_(t: Tracer, node: ast.Assert) -> None:
    """Raise StaticAssertionError unless a known condition holds."""
    holds = t.evaluate(node.test)
    if isinstance(holds, Value):
        help = "assert what follows from const_expr parameters, globals and shapes"
        raise t.error(NotStaticError, node.test, "`assert` needs a condition known at compile time", help=help)
    if not holds:
        message = None if node.msg is None else t.evaluate(node.msg)
        said = "" if message is None else f": {message if isinstance(message, str) else describe(message)}"
        raise t.error(StaticAssertionError, node, f"`{ast.unparse(node.test)}` does not hold{said}")


def return_(t: Tracer, node: ast.Return) -> None:
    """Note what the function returns, and that it ends here."""
    if t.region_depth > t.exits:
        help = "put the rest of the function under an `if`, and return at its end"
        message = "a `return` inside a loop, a scope, or a branch in one of them"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    value = None if node.value is None else t.evaluate(node.value)
    t.returned = Returned(value, t.span(node))
