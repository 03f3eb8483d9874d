"""Nested functions: a `def` inside a body, written out where it is called; it sees the variables around it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from tilewright.errors import ArgumentCountError, UnsupportedFeatureError
from tilewright.frontend.walk.bindings import Binding
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.stated import as_parameter, as_returned, stated
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


def parameters_of(node: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters of a function that is written out."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def define(t: Tracer, node: ast.FunctionDef) -> None:
    """Let a name stand for a function; decorators say what kind of sub-kernel it is."""
    kinds = [_kind(t, each) for each in node.decorator_list] or [func]
    if len(kinds) > 1 or not isinstance(kinds[0], SubKernelKind):
        help = "pto.simd, pto.cube, pto.tileop, pto.simt and pto.func decorate functions inside a kernel"
        raise t.error(UnsupportedFeatureError, node.decorator_list[0], "this decorates no function here", help=help)
    t.names[node.name] = Binding(_nested(t, node, kinds[0], node), t.span(node))


_WORDS = ("name", "target", "ast_rewrite", "returns", "max_threads")


def _kind(t: Tracer, node: ast.expr) -> object:
    """Return what decorates a function: a kind of sub-kernel, bare or with words."""
    kind = t.evaluate(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(kind, SubKernelKind) or node.args:
        return t.evaluate(node)
    words = {each.arg: t.evaluate(each.value) for each in node.keywords}
    for each in node.keywords:
        if each.arg not in _WORDS:
            message = f"pto.{kind.name} has no parameter `{each.arg}`"
            raise t.error(ArgumentCountError, each.value, message, help=f"it has {', '.join(_WORDS)}")
    return replace(kind, returns=words["returns"]) if "returns" in words else kind


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
    inner = replace(callee.owner, writer=t.writer, names=dict(callee.owner.names))
    inner.begin()
    says = {arg.arg: stated(callee.owner, arg.annotation) for arg in parameters_of(callee.node)}
    for name, value in callee.defaults.items():
        inner.let(name, value, given.node)
    for name, argument in bound.items():
        inner.let(name, as_parameter(t, says[name], name, argument), given.node)
    inner.execute(callee.node.body)
    returned = None if inner.returned is None else inner.returned.value
    wanted = callee.kind.returns or stated(callee.owner, callee.node.returns)
    return as_returned(t, wanted, given.name, Argument(returned, given.node)) if callee.kind.is_helper else returned
