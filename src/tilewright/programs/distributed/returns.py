"""Returns: which of its arguments a host function gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.core.program import Function
from tilewright.core.region import Region
from tilewright.core.stmt import ReturnStmt
from tilewright.core.visitor import statements
from tilewright.errors import ExecutionError


def given_back(host: Function, args: Sequence[Any], results: Sequence[Any]) -> tuple[int, ...]:
    """Return the places of what a host function returns among its arguments; ExecutionError for anything else."""
    found = [next((k for k, arg in enumerate(args) if _is_same(arg, result)), None) for result in results]
    if None in found:
        spans = [stmt.span for stmt in statements(host.body) if isinstance(stmt, ReturnStmt)]
        message = "a host function returns tensors that it was given, and this is something else"
        help = "write it to a `pl.Out[...]` parameter, and return that"
        raise ExecutionError(message, spans=spans[:1] or [host.span], help=help)
    return tuple(place for place in found if place is not None)


def _is_same(arg: Any, result: Any) -> bool:
    return isinstance(arg, Region) and isinstance(result, Region) and arg.data is result.data
