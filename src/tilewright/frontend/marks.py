"""Marks: what a function says about itself and about its values, without changing any."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.core.enums import FunctionType
from tilewright.core.expr import Const, Expr, ParameterName
from tilewright.core.types import TensorType
from tilewright.errors import DirectiveError, OperandError
from tilewright.frontend import directives
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value

_FORM = 'pl.func_attr({"name": value})'
_DECORATED = ("auto_scope", "external_source")
"""What decorators say."""


def func_attr(t: Translator, node: ast.Call) -> None:
    """Keep what a function says about itself, before anything else it says."""
    _check_first(t, node)
    if len(node.args) != 1 or node.keywords:
        message = "pl.func_attr() takes exactly one positional dict argument"
        raise t.error(DirectiveError, node, message, help=_FORM)
    for name, value in attributes(t, node.args[0], "the argument of pl.func_attr()").items():
        if name in _DECORATED:
            message = f"'{name}' cannot be set with pl.func_attr()"
            raise t.error(DirectiveError, node, message, help=f"@pl.function({name}=...) sets it")
        if name in t.attrs:
            message = f"Duplicate function attribute '{name}'"
            raise t.error(DirectiveError, node, message, help="say it once")
        t.attrs[name] = value


def attributes(t: Translator, given: ast.expr, what: str) -> dict[str, Any]:
    """Return what a dict literal says; DirectiveError unless its keys are names and its values are known."""
    if not isinstance(given, ast.Dict):
        message = f"{what} must be a dict literal, got `{ast.unparse(given)}`"
        raise t.error(DirectiveError, given, message, help='{"name": value}')
    found: dict[str, Any] = {}
    for key, value in zip(given.keys, given.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            message = f"an attribute's key must be a string literal, got `{ast.unparse(key) if key else '**'}`"
            raise t.error(DirectiveError, key or given, message, help='{"name": value}')
        if key.value in found:
            message = f"Duplicate function attribute '{key.value}'"
            raise t.error(DirectiveError, key, message, help="say it once")
        found[key.value] = _attribute(t, key.value, value)
    return found


def _check_first(t: Translator, node: ast.Call) -> None:
    for stmt in t.captured.node.body:
        if not isinstance(stmt, ast.Expr):
            break
        if stmt.value is node:
            return
        if not isinstance(stmt.value, ast.Constant) and not _is_func_attr(t, stmt.value):
            break
    message = "pl.func_attr() must appear before every other statement of the function"
    raise t.error(DirectiveError, node, message, help="move it to the top")


def _is_func_attr(t: Translator, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and t.evaluate(node.func) is directives.func_attr


def _attribute(t: Translator, name: str, node: ast.expr) -> Any:
    """Return what an attribute is; a parameter is kept by its name."""
    value = t.evaluate(node)
    if isinstance(node, ast.Name) and isinstance(value, Expr) and id(value) in t.fixed:
        return ParameterName(node.id)
    found = _plain(value)
    if isinstance(found, Expr):
        message = f"the attribute '{name}' is a literal, an enum, a dtype or a parameter, got `{ast.unparse(node)}`"
        raise t.error(DirectiveError, node, message, help=_FORM)
    return found


def _plain(value: Value) -> Any:
    if isinstance(value, Const):
        return value.value
    if isinstance(value, (tuple, list)):
        return tuple(_plain(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return value


def dump_tag(t: Translator, node: ast.Call) -> Value:
    """Mark a tensor: what is dispatched with it from here on shows it."""
    if t.func_type not in (FunctionType.Orchestration, FunctionType.Inline) and not t.inlining:
        message = "pl.dump_tag() is only valid inside an Orchestration or inline function"
        raise t.error(DirectiveError, node, message, help="mark the tensor where kernels are dispatched")
    if len(node.args) != 1 or node.keywords:
        raise t.error(DirectiveError, node, "pl.dump_tag() takes one positional argument", help="pl.dump_tag(x)")
    name = node.args[0]
    if not isinstance(name, ast.Name):
        message = f"pl.dump_tag() takes a bare name, got `{ast.unparse(name)}`"
        raise t.error(DirectiveError, name, message, help="bind the value to a name first")
    if t.find(name.id) is None:
        message = f"pl.dump_tag() marks '{name.id}', which is not defined here"
        raise t.error(DirectiveError, name, message, help="mark a tensor that is bound before this line")
    value = t.evaluate(name)
    if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
        message = f"pl.dump_tag() marks tensors, and '{name.id}' is {t.describe(value)}"
        raise t.error(OperandError, name, message, help="write a number into a tensor to look at it")
    t.tagged.add(id(value))
    return value
