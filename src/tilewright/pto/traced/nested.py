"""Nested functions: a `def` inside a body, written out where it is called; it sees the variables around it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import ArgumentCountError, UnsupportedFeatureError
from tilewright.frontend.walk.bindings import Binding
from tilewright.pto.traced.arguments import Arguments
from tilewright.pto.traced.subkernels import SubKernelKind, func
from tilewright.pto.traced.tracer import Tracer


@dataclass(frozen=True, eq=False)
class Nested:
    """A function that a body defines."""

    node: ast.FunctionDef
    kind: SubKernelKind
    defaults: dict[str, Any]
    owner: Tracer
    """The place it was defined at, with the variables it sees."""


def define(t: Tracer, node: ast.FunctionDef) -> None:
    """Let a name stand for a function; decorators say what kind of sub-kernel it is."""
    kinds = [t.evaluate(each) for each in node.decorator_list] or [func]
    if len(kinds) > 1 or not isinstance(kinds[0], SubKernelKind):
        help = "pto.simd, pto.cube, pto.tileop, pto.simt and pto.func decorate functions inside a kernel"
        raise t.error(UnsupportedFeatureError, node.decorator_list[0], "this decorates no function here", help=help)
    t.names[node.name] = Binding(_nested(t, node, kinds[0], node), t.span(node))


def lambda_(t: Tracer, node: ast.Lambda) -> Nested:
    """Return the function that a lambda is."""
    returned = ast.copy_location(ast.Return(node.body), node.body)
    body = ast.FunctionDef("<lambda>", node.args, [returned], [])
    return _nested(t, ast.copy_location(body, node), func, node)


def _nested(t: Tracer, function: ast.FunctionDef, kind: SubKernelKind, node: ast.AST) -> Nested:
    args = function.args
    if args.vararg is not None or args.kwarg is not None:
        message = f"`{function.name}` takes any number of arguments"
        raise t.error(ArgumentCountError, node, message, help="write each parameter out")
    named = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    pairs = [*zip(named[len(named) - len(args.defaults) :], args.defaults, strict=True)]
    pairs += [(arg.arg, value) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value]
    defaults = {name: t.evaluate(value) for name, value in pairs}
    return Nested(function, kind, defaults, t)


def call_nested(t: Tracer, callee: Nested, given: Arguments) -> Any:
    """Write a nested function out where it is called; return what it returns."""
    args = callee.node.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    names = [*positional, *(arg.arg for arg in args.kwonlyargs)]
    bound = given.bound(t, positional, names, [name for name in names if name not in callee.defaults])
    values = {**callee.defaults, **{name: argument.value for name, argument in bound.items()}}
    inner = replace(callee.owner, writer=t.writer, names=dict(callee.owner.names), later=frozenset(), returned=None)
    inner.region_depth = 0
    for name, value in values.items():
        inner.let(name, value, given.node)
    inner.execute(callee.node.body)
    return None if inner.returned is None else inner.returned.value
