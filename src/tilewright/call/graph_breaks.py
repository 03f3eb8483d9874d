"""Graph breaks: calls at which torch's compiler breaks its graph, rather than read what they do.

It reads the Python of what it compiles, and would follow a call down to where addresses are taken of tensors that have
none. What it does not read it leaves to Python, with everything below: the numbers are right, and the graph is in two
parts. Whoever asks for one graph is told what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from tilewright.imported import imported

F = TypeVar("F", bound=Callable[..., Any])

_codes: list[CodeType] = []
"""The functions that torch itself has not been told of."""


def unread(instead: str) -> Callable[[F], F]:
    """Let torch's compiler leave calls of a function to Python; `instead` says what would be part of a graph."""

    def marked(function: F) -> F:
        message = f"torch's compiler cannot look into it: {instead}"
        vars(function).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=message)
        _codes.append(cast("FunctionType", function).__code__)
        return function

    return marked


def hide() -> None:
    """Tell torch, where it is loaded, which functions its compiler must leave alone with all that they call."""
    torch: Any = imported("torch")
    frames = getattr(getattr(getattr(torch, "_C", None), "_dynamo", None), "eval_frame", None)
    if frames is None or not hasattr(frames, "_FrameExecStrategy"):  # none, one that is being imported, or an old one
        return
    skip = frames._FrameAction.SKIP
    while _codes:
        frames.set_code_exec_strategy(_codes.pop(), frames._FrameExecStrategy(skip, skip))
