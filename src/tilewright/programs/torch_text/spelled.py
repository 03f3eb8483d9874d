"""Spellings: which function of a text each op is that has no meaning by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

SPELLED: dict[str, Callable[..., Any]] = {}
"""The function of each op, by the op's full name: it takes the element type of the result, then the op's parameters."""


def spells(*ops: str) -> Callable[[F], F]:
    """Let a function stand for ops."""

    def sign_in(function: F) -> F:
        SPELLED.update(dict.fromkeys(ops, function))
        return function

    return sign_in
