"""Arguments: what a call in a kernel passes, with where each was written."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, cast

from tilewright.errors import ArgumentCountError, OperandError
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.expressions import spread
from tilewright.frontend.walk.walker import Value
from tilewright.records import record


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
    parts = [(value, arg) for arg in node.args for value in spread(t, arg)]
    values, nodes = zip(*parts, strict=True) if parts else ((), ())
    keyword_nodes = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    kwargs = {name: t.operand(value) for name, value in keyword_nodes.items() if name not in unread}
    for keyword in node.keywords:
        for name, value in _options(t, keyword, kwargs).items() if keyword.arg is None else ():
            kwargs[name], keyword_nodes[name] = value, keyword.value
    return Arguments(values, kwargs, nodes, keyword_nodes)


def _options(t: Translator, keyword: ast.keyword, given: Collection[str]) -> Mapping[str, Value]:
    """Return the arguments that `**options` stands for."""
    value = t.operand(keyword.value)
    options: dict[Any, Value] = cast("dict[Any, Value]", value) if isinstance(value, dict) else {None: value}
    if not all(isinstance(name, str) for name in options):
        help = "two stars are for a dict with names for keys that is known while the kernel is read"
        raise t.error(OperandError, keyword.value, f"arguments by name are a dict, got {t.describe(value)}", help=help)
    if twice := [name for name in options if name in given]:
        raise t.error(ArgumentCountError, keyword.value, f"`{twice[0]}` is given twice", help="give it once")
    return options


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
