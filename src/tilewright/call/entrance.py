"""Entrances: the one way in which something else takes the calls of an object before its own `__call__`."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def reroute(thing: object, call: Callable[..., Any] | None) -> None:
    """Let calls of an object go to `call`, which has no `self`, before its own `__call__`; None for that one again."""
    kind = type(thing)
    plain = kind.__mro__[1] if _MARK in vars(kind) else kind
    if call is None:
        thing.__class__ = plain
        return
    held = staticmethod(call) if isinstance(call, FunctionType) else call
    body = {"__call__": held, "__doc__": plain.__doc__, "__module__": plain.__module__, _MARK: True}
    made: Any = type(plain)  # its metaclass, where it has one
    thing.__class__ = made(plain.__name__, (plain,), body)


_MARK = "_is_rerouted"
