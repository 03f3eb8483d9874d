"""Rerouting: the one way in which something else takes the calls of an object before its own `__call__`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any


def reroute(thing: object, call: Callable[..., Any] | None, name: str = "__call__") -> None:
    """Let calls of an object go to `call`, which has no `self`, before its own `__call__`; None for that one again.

    With another `name` that is another method which Python looks up in the class.
    """
    kind = type(thing)
    plain = kind.__mro__[1] if _MARK in vars(kind) else kind
    if call is None:
        thing.__class__ = plain
        return
    held = staticmethod(call) if isinstance(call, FunctionType) else call
    body = {name: held, "__doc__": plain.__doc__, "__module__": plain.__module__, _MARK: True}
    made: Any = _answering(type(plain)) if name == "__call__" else type(plain)  # its metaclass, where it has one
    thing.__class__ = made(plain.__name__, (plain,), body)


_MARK = "_is_rerouted"


class _Unbound:
    """`__call__` as a rerouted object's class gives it: a function that takes the object first, as those of others do.

    Python looks a metaclass up for `type(thing).__call__`, and does not where it calls the thing.
    """

    def __get__(self, kind: type, owner: type | None = None) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            plain: Any = kind.__mro__[1]
            is_call = args and isinstance(args[0], plain)
            return plain.__call__(*args, **named) if is_call else type.__call__(kind, *args, **named)

        return call

    def __set__(self, kind: type, value: object) -> None:
        raise AttributeError("a rerouted object takes its calls where `reroute` says")


@cache
def _answering(metaclass: type[type]) -> type[type]:
    return type(metaclass.__name__, (metaclass,), {"__call__": _Unbound()})
