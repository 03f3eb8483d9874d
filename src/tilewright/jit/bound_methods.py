"""Bound methods: the kernels that are bound to one instance, kept by the instance itself.

They refer to it, so nothing else may keep them: an instance would live as long as its class. Instances are told apart
by identity, since equal ones may hold what a kernel can tell. A copy of an instance starts without any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from tilewright.frontend.kernels import Kernel

K = TypeVar("K", bound=Kernel)

PLACE = "__tilewright_methods__"
"""Where in an instance's attributes they lie."""


class Methods:
    """The bound kernels of one instance, by the kernels of its class."""

    def __init__(self, owner: int = 0) -> None:
        self.owner = owner
        self.bound: dict[Kernel, Any] = {}

    def __copy__(self) -> Methods:
        return Methods()

    def __deepcopy__(self, memo: dict[int, Any]) -> Methods:
        return Methods()

    def __reduce__(self) -> tuple[type[Methods], tuple[()]]:
        return Methods, ()


def bound(kernel: K, instance: object, make: Callable[[], K]) -> K | None:
    """Return the kernel as it is bound to an instance, made the first time; None where the instance has no room."""
    held: Any = getattr(instance, "__dict__", None)
    if not isinstance(held, dict):
        return None
    attributes = cast("dict[str, Any]", held)
    found = attributes.get(PLACE)
    if not isinstance(found, Methods) or found.owner != id(instance):  # a copy brings what it was copied from
        found = attributes[PLACE] = Methods(id(instance))
    known = found.bound.get(kernel)
    return known if known is not None else found.bound.setdefault(kernel, make())
