"""Statements: assignments, calls for their effect, assertions, returns and scopes."""

from __future__ import annotations

import ast

from tilewright.errors import (
    NotStaticError,
    OperandError,
    StaticAssertionError,
    UncallableError,
    UnsupportedFeatureError,
)
from tilewright.frontend.walk.bindings import Binding
from tilewright.frontend.walk.statements import bind_target
from tilewright.pto.module import Op, Value
from tilewright.pto.traced.liveness import assigned_in
from tilewright.pto.traced.namespace import Scope
from tilewright.pto.traced.tracer import Returned, Tracer
from tilewright.pto.traced.values import describe, is_runtime


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
    if t.region_depth:
        help = "put the rest of the function under an `if`, and return at its end"
        message = "a `return` inside a run-time branch or loop"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    value = None if node.value is None else t.evaluate(node.value)
    t.returned = Returned(value, t.span(node))


def with_(t: Tracer, node: ast.With) -> None:
    """Trace a scope."""
    if len(node.items) != 1 or node.items[0].optional_vars is not None:
        help = "write one `with` for each scope, without `as`"
        raise t.error(UnsupportedFeatureError, node.items[0].context_expr, "a `with` opens one scope here", help=help)
    opened = t.evaluate(node.items[0].context_expr)
    if not isinstance(opened, Scope):
        help = "scopes are pto.vecscope(), pto.section.vector() and pto.section.cube()"
        raise t.error(UncallableError, node.items[0].context_expr, f"{describe(opened)} is no scope", help=help)
    _scope(t, opened, node)


def _scope(t: Tracer, scope: Scope, node: ast.With) -> None:
    """Trace a region that runs where it stands; what it binds ends with it."""
    before = dict(t.names)
    t.region_depth += 1
    with t.writer.region() as region:
        t.execute(node.body)
    t.region_depth -= 1
    t.writer.emit(Op(scope.op, regions=(region,), span=t.span(node.items[0].context_expr)))
    for name in assigned_in(node.body):
        binding = t.names.get(name)
        if binding is not None and before.get(name) is not binding and is_runtime(binding.value):
            problem = f"'{name}' was bound inside the scope of line {node.lineno}, and values do not leave it"
            t.names[name] = Binding(
                None, binding.span, problem, "store it to memory inside, or bind it before the scope"
            )
