"""Dicts: what a kernel keeps under known keys while it is read, tiles and numbers of the running program among it."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.core.expr import Const
from tilewright.errors import OperandError
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value


def literal(t: Translator, node: ast.Dict) -> dict[Any, Value]:
    """Return the dict that `{key: value, **others}` is."""
    found: dict[Any, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            found |= _spread(t, value)
        else:
            found[_key(t, key)] = t.operand(value)
    return found


def _key(t: Translator, node: ast.expr) -> Any:
    value = t.operand(node)
    key = value.value if isinstance(value, Const) else value
    if not isinstance(key, (bool, int, float, str, type(None))):
        message = f"a key is a number or a text that is known while the kernel is read, got {t.describe(key)}"
        raise t.error(OperandError, node, message, help="choose by an `if` what only the running program knows")
    return key


def _spread(t: Translator, node: ast.expr) -> dict[Any, Value]:
    value = t.operand(node)
    if not isinstance(value, dict):
        help = "two stars are for a dict that is known while the kernel is read"
        raise t.error(OperandError, node, f"only a dict can be spread here, got {t.describe(value)}", help=help)
    return value  # pyright: ignore[reportUnknownVariableType]
