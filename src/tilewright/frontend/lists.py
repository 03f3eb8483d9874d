"""Lists: what a kernel builds up while it is read, of tiles, numbers or anything else.

A list is fixed as a value, and a method that would change it in place gives every name that stands for it the changed
one. That happens where the list was made: in a block that runs any number of times, or perhaps not at all, nobody could
say how long it is.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tilewright.errors import OutOfBoundsError, StaticEvaluationError, UnsupportedFeatureError
from tilewright.frontend.arguments import values_of
from tilewright.frontend.scope import UNKNOWN
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Listed, Value


def change(t: Translator, node: ast.Call) -> Value:
    """Return what a method of a list gives, every name of the list standing for what it leaves."""
    assert isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    given = values_of(t, node)
    name, method = node.func.value.id, node.func.attr
    args = [t.settled(arg, f"{name}.{method}", t.span(node)) for arg in given.args]
    changed: list[Any] = list(_owner(t, name, node))
    try:
        result = getattr(changed, method)(*args, **given.kwargs)
    except Exception as error:
        raise t.error(StaticEvaluationError, node, f"cannot evaluate `{ast.unparse(node)}`: {error}") from None
    _renew(t, name, Listed(changed))
    return result


def replace_item(t: Translator, target: ast.Subscript, value: Value, source: ast.expr) -> None:
    """Translate `items[n] = value`."""
    assert isinstance(target.value, ast.Name)
    name, index = target.value.id, t.index(t.operand(target.slice), target.slice)
    changed: list[Any] = list(_owner(t, name, target))
    try:
        changed[index] = t.settled(t.placed(value, source), name, t.span(source))
    except (IndexError, TypeError) as error:
        help = f"it holds {len(changed)} value(s), counted from 0"
        raise t.error(OutOfBoundsError, target.slice, f"`{ast.unparse(target)}`: {error}", help=help) from None
    _renew(t, name, Listed(changed))


def _owner(t: Translator, name: str, node: ast.AST) -> Listed:
    """Return a list that may be changed here; UnsupportedFeatureError for one that another block or function has."""
    binding = t.find(name)
    assert binding is not None
    parameters = {arg.arg for arg in ast.walk(t.captured.node.args) if isinstance(arg, ast.arg)}
    holders = _holders(t, binding.value)
    if parameters & holders.keys():
        message = f"`{name}` is the caller's, and stays as long as it is"
        raise t.error(UnsupportedFeatureError, node, message, help=f"return `{name} + [value]`")
    if any(holder.block != t.scope.block for holder in holders.values()):
        message = f"`{name}` cannot change in a block that runs when the program does: a list is built while it is read"
        help = "a `for` over a tuple, or over `range` of constants, is written out; so is an `if` on what is known"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    return binding.value


def _holders(t: Translator, items: Listed) -> Mapping[str, Any]:
    """Return the names that stand for a list, or for something that holds it."""
    names = {name: found for name in t.bound_names() if (found := t.find(name)) is not None}
    return {name: binding for name, binding in names.items() if _holds(binding.value, items)}


def _holds(value: Value, items: Listed) -> bool:
    return value is items or (isinstance(value, tuple) and any(_holds(part, items) for part in value))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _renew(t: Translator, name: str, changed: Listed) -> None:
    """Let every name that stands for a list stand for what it has become."""
    binding = t.find(name)
    assert binding is not None
    items = binding.value
    for holder in _holders(t, items).values():
        holder.value, holder.known = _renewed(holder.value, items, changed), UNKNOWN


def _renewed(value: Value, items: Listed, changed: Listed) -> Value:
    if value is items:
        return changed
    if not _holds(value, items):
        return value
    parts = [_renewed(part, items, changed) for part in value]
    return Listed(parts) if isinstance(value, Listed) else tuple(parts)
