"""Arguments: what a call in a kernel passes, with where each was written."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from tilewright.errors import UnsupportedFeatureError
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.records import record
from tilewright.source import Span


@record
class Arguments:
    """The arguments of a call, with where each was written."""

    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    nodes: tuple[ast.expr, ...]
    keyword_nodes: Mapping[str, ast.expr]


UNREAD = ("attrs", "device")
"""What calls of a program's functions may say about themselves; it changes nothing."""


def arguments(t: Translator, node: ast.Call, unread: Collection[str] = ()) -> Arguments:
    """Return the evaluated arguments of a call, in order; those by name that are left `unread` are only located."""
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            raise _starred(t.span(arg))
    for keyword in node.keywords:
        if keyword.arg is None:
            raise _starred(t.span(keyword.value))
    args = tuple(t.operand(arg) for arg in node.args)
    keyword_nodes = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    kwargs = {name: t.operand(value) for name, value in keyword_nodes.items() if name not in unread}
    return Arguments(args, kwargs, tuple(node.args), keyword_nodes)


def _starred(span: Span) -> UnsupportedFeatureError:
    message, help = "arguments are written out, not starred", "write each argument, by position or by name"
    return UnsupportedFeatureError(message, spans=[span], help=help)


def values_of(t: Translator, node: ast.Call, unread: Collection[str] = ()) -> Arguments:
    """Return the arguments of a call that becomes part of the program, none of them data from outside."""
    given = arguments(t, node, unread)
    for value, where in zip(given.args, given.nodes, strict=True):
        t.check_no_data(value, where)
    for name, value in given.kwargs.items():
        t.check_no_data(value, given.keyword_nodes[name])
    return given


@cache
def parameters_of(directive: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of what a directive takes by position, and of what it takes by name alone."""
    parameters = inspect.signature(directive).parameters.values()
    positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    return positional, tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
