"""Statements: assignments, calls for their effect, assertions, returns and scopes."""

from __future__ import annotations

import ast

from tilewright.errors import (
    ElementWriteError,
    NotStaticError,
    OperandError,
    ParserTypeError,
    StaticAssertionError,
    UncallableError,
    UnsupportedFeatureError,
)
from tilewright.pto.module import Op, Value
from tilewright.pto.traced.expressions import combined
from tilewright.pto.traced.names import Binding, assigned_in
from tilewright.pto.traced.namespace import Scope
from tilewright.pto.traced.tracer import Returned, Tracer, statement
from tilewright.pto.traced.values import describe, is_runtime, is_sequence


@statement(ast.Pass)
def _pass(t: Tracer, node: ast.Pass) -> None:
    return None


@statement(ast.Expr)
def _expression(t: Tracer, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):  # a docstring
        t.evaluate(node.value)


@statement(ast.Assign)
def _assign(t: Tracer, node: ast.Assign) -> None:
    value = t.evaluate(node.value)
    for target in node.targets:
        bind_target(t, target, value, node.value)


@statement(ast.AnnAssign)
def _annotated(t: Tracer, node: ast.AnnAssign) -> None:
    if node.value is not None:
        bind_target(t, node.target, t.evaluate(node.value), node.value)


@statement(ast.AugAssign)
def _augmented(t: Tracer, node: ast.AugAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise _unassignable(t, node.target)
    lhs = t.lookup(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
    bind_target(t, node.target, combined(t, node.op, lhs, t.evaluate(node.value), node), node.value)


def bind_target(t: Tracer, target: ast.expr, value: object, source: ast.expr) -> None:
    """Let a variable, or a tuple of them, stand for a value."""
    if isinstance(target, ast.Name):
        if value is None and isinstance(source, ast.Call):
            help = "tile ops write into their last operand: use that"
            raise OperandError(f"`{ast.unparse(source.func)}` gives no value", spans=[t.span(source)], help=help)
        t.bind(target.id, value, target)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(t, target, value, source)
    else:
        raise _unassignable(t, target)


def _unpack(t: Tracer, target: ast.Tuple | ast.List, value: object, source: ast.expr) -> None:
    values = value if is_sequence(value) else None
    if values is None or len(values) != len(target.elts):
        have = describe(value) if values is None else f"{len(values)} values"
        message = f"{len(target.elts)} names cannot share {have}"
        raise ParserTypeError(message, spans=[t.span(target)], help="give one name for each value")
    for inner, part in zip(target.elts, values, strict=True):
        bind_target(t, inner, part, source)


def _unassignable(t: Tracer, target: ast.expr) -> ElementWriteError:
    help = "pto.store_scalar(value, pointer, offset) writes one element, pto.tile ops a whole tile"
    return ElementWriteError(f"`{ast.unparse(target)}` cannot be assigned", spans=[t.span(target)], help=help)


@statement(ast.Assert)
def _assert(t: Tracer, node: ast.Assert) -> None:
    holds = t.evaluate(node.test)
    if isinstance(holds, Value):
        help = "assert what follows from const_expr parameters, globals and shapes"
        raise NotStaticError("`assert` needs a condition known at compile time", spans=[t.span(node.test)], help=help)
    if not holds:
        message = None if node.msg is None else t.evaluate(node.msg)
        said = "" if message is None else f": {message if isinstance(message, str) else describe(message)}"
        raise StaticAssertionError(f"`{ast.unparse(node.test)}` does not hold{said}", spans=[t.span(node)])


@statement(ast.Return)
def _return(t: Tracer, node: ast.Return) -> Returned:
    if t.region_depth:
        help = "put the rest of the function under an `if`, and return at its end"
        message = "a `return` inside a run-time branch or loop"
        raise UnsupportedFeatureError(message, spans=[t.span(node)], help=help)
    value = None if node.value is None else t.evaluate(node.value)
    return Returned(value, t.span(node))


@statement(ast.With)
def _with(t: Tracer, node: ast.With) -> Returned | None:
    if len(node.items) != 1 or node.items[0].optional_vars is not None:
        help = "write one `with` for each scope, without `as`"
        raise UnsupportedFeatureError(
            "a `with` opens one scope here", spans=[t.span(node.items[0].context_expr)], help=help
        )
    opened = t.evaluate(node.items[0].context_expr)
    if not isinstance(opened, Scope):
        help = "scopes are pto.vecscope(), pto.section.vector() and pto.section.cube()"
        raise UncallableError(f"{describe(opened)} is no scope", spans=[t.span(node.items[0].context_expr)], help=help)
    return _scope(t, opened, node)


def _scope(t: Tracer, scope: Scope, node: ast.With) -> None:
    """Trace a region that runs where it stands; what it binds ends with it."""
    before = dict(t.names)
    t.region_depth += 1
    with t.builder.region() as region:
        t.execute(node.body, t.later)
    t.region_depth -= 1
    t.builder.emit(Op(scope.op, regions=(region,), span=t.span(node.items[0].context_expr)))
    for name in assigned_in(node.body):
        binding = t.names.get(name)
        if binding is not None and before.get(name) is not binding and is_runtime(binding.value):
            problem = f"'{name}' was bound inside the scope of line {node.lineno}, and values do not leave it"
            t.names[name] = Binding(
                None, binding.span, problem, "store it to memory inside, or bind it before the scope"
            )
