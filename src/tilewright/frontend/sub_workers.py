"""Sub-workers: plain Python functions that a host function calls, which no front end looks into."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tilewright.core.program import Function
from tilewright.frontend.capture import Captured

_BODIES: dict[tuple[str, int, str], Callable[..., Any]] = {}
"""What sub-workers do, by where they are written: a program has their signatures."""


def remember(captured: Captured) -> None:
    """Let a sub-worker's body be found, unless it has `...` for one."""
    if not all(isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) for stmt in captured.node.body):
        _BODIES[_place(captured.node.name, captured.span(captured.node))] = captured.function


def body_of(function: Function) -> Callable[..., Any] | None:
    """Return what a sub-worker does, None for one that has to be told at run time."""
    return _BODIES.get(_place(function.name, function.span))


def _place(name: str, span: Any) -> tuple[str, int, str]:
    return ("" if span.source is None else span.source.filename, span.line, name)
