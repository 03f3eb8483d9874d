"""Statements: assignments, expressions evaluated for their effect, and which way control goes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tilewright.errors import OperandError, UnsupportedFeatureError
from tilewright.frontend.walk.expressions import Augmented
from tilewright.frontend.walk.walker import Handler, Value, Walker


def _pass(t: Walker, node: ast.Pass) -> None:
    return None


def _expression(t: Walker, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant) and not t.takes(node):  # a docstring does nothing
        t.effect(node)


def _assign(t: Walker, node: ast.Assign) -> None:
    if t.takes(node) or (len(node.targets) == 1 and _changes(t, node.targets[0], node.value)):
        return
    value = t.evaluate(node.value)
    if len(node.targets) > 1:
        value = t.placed(value, node.value)
    for target in node.targets:
        bind_target(t, target, value, node.value)


def _augmented(t: Walker, node: ast.AugAssign) -> None:
    target = node.target
    if not isinstance(target, t.targets):
        raise t.unassignable(target)
    read = ast.Name(target.id) if isinstance(target, ast.Name) else ast.Subscript(target.value, target.slice)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    read = ast.copy_location(read, target)
    both = ast.copy_location(Augmented(read, node.op, node.value), node)
    if _changes(t, target, both):
        return
    value = t.updated(target, both) if isinstance(target, ast.Subscript) else t.evaluate(both)
    bind_target(t, target, value, node.value)


def _changes(t: Walker, target: ast.expr, value: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and t.changes(target, value)


def bind_target(t: Walker, target: ast.expr, value: Value, source: ast.expr) -> None:
    """Let a name, or several, stand for what `source` gave, or write it into an item."""
    if isinstance(target, ast.Name):
        t.bind(target, value, source)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(t, target, t.parts(value, source, len(target.elts)), source)
    elif isinstance(target, ast.Subscript):
        t.write(target, value, source)
    else:
        raise t.unassignable(target)


def _unpack(t: Walker, target: ast.Tuple | ast.List, value: Value, source: ast.expr) -> None:
    if not isinstance(value, (tuple, list)):
        help = "unpack x.shape, a tuple, or what a function with several results returns"
        message = f"only several values can be unpacked, got {t.describe(value)}"
        raise t.error(OperandError, source, message, help=help)
    parts: list[Value] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    at = next((place for place, element in enumerate(target.elts) if isinstance(element, ast.Starred)), None)
    if at is not None and len(parts) >= len(target.elts) - 1:
        end = len(parts) - (len(target.elts) - 1 - at)
        parts[at:end] = [t.listed(parts[at:end])]
    if len(parts) != len(target.elts):
        message = f"{len(target.elts)} name(s) for {len(parts)} value(s)"
        raise t.error(OperandError, target, message, help="give each value one name; `_` is one too")
    if len(parts) > 1:
        parts = [t.apart(part, source) for part in parts]
    for element, part in zip(target.elts, parts, strict=True):
        bind_target(t, element.value if isinstance(element, ast.Starred) else element, part, source)


def _if(t: Walker, node: ast.If) -> None:
    condition = t.condition(node.test)
    if isinstance(condition, bool):
        t.taken(node.body if condition else node.orelse)
    else:
        t.branch(condition, node)


def check_else(t: Walker, node: ast.For | ast.While) -> None:
    """Raise for a loop with an `else`."""
    if node.orelse:
        message, help = "a loop has no else branch here", "put it after the loop"
        raise t.error(UnsupportedFeatureError, node.orelse[0], message, help=help)


STATEMENTS: Mapping[type[ast.AST], Handler] = {
    ast.Pass: _pass,
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.If: _if,
}
"""What the walk does at each kind of statement."""
