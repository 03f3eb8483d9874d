"""Sub-workers: plain Python functions that a host function calls, which no front end looks into."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.program import Function
from tilewright.errors import ExecutionError
from tilewright.frontend.capture import Captured
from tilewright.imported import imported

_BODIES: dict[tuple[str, int, str], Callable[..., Any]] = {}
"""What sub-workers do, by where they are written: a program has their signatures."""


def remember(captured: Captured) -> None:
    """Let a sub-worker's body be found, unless it has `...` for one."""
    if not all(isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) for stmt in captured.node.body):
        _BODIES[_place(captured.node.name, captured.span(captured.node))] = captured.function


def body_of(function: Function) -> Callable[..., Any] | None:
    """Return what a sub-worker does, None for one that has to be told at run time."""
    return _BODIES.get(_place(function.name, function.span))


def told(function: Function) -> Callable[[list[Any]], Any]:
    """Return what a sub-worker does, given a list of arrays and numbers; ExecutionError where nobody has said so."""
    body = body_of(function)
    if body is None:
        message, help = f"nobody has said what `{function.name}` does", "program.prepare(callbacks={...}) does"
        raise ExecutionError(message, spans=[function.span], help=help)
    return lambda args: body(*as_tensors(args))


def as_tensors(args: Sequence[Any]) -> list[Any]:
    """Return arrays as tensors of torch that share their memory, where torch is there."""
    torch = imported("torch")
    if torch is None:
        return list(args)
    return [torch.from_numpy(_writable(arg)) if isinstance(arg, np.ndarray) else arg for arg in args]


def _writable(array: Any) -> Any:
    """Return an array that torch takes without a warning: one that must not be written, copied."""
    return array if array.flags.writeable else np.array(array)


def _place(name: str, span: Any) -> tuple[str, int, str]:
    return ("" if span.source is None else span.source.filename, span.line, name)
