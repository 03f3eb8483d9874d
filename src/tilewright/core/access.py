"""Accesses: who wants to know which elements of tensors the interpreter touches, and how.

Ops that touch part of a tensor say which part; nobody listens unless something has asked to.
"""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tilewright.core.region import Array


class Access(Enum):
    """What is done to an element; `ADD` is an atomic add."""

    READ = "reads"
    WRITE = "writes"
    ADD = "adds to"


class Observer(Protocol):
    """Hears of every access while it is the current observer."""

    def touched(self, access: Access, elements: Array) -> None:
        """Take note of an access to all elements of a view."""
        ...


OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)
"""Who listens, if anybody does."""


def touch_each(access: Access, elements: Array, places: tuple[Array, ...]) -> None:
    """Tell the current observer of an access to what lies at some places: indices along the leading axes."""
    if OBSERVER.get() is not None:
        for place in {*zip(*(indices.ravel().tolist() for indices in places), strict=True)}:
            touch(access, elements[tuple(slice(index, index + 1) for index in place)])


def touch(access: Access, elements: Array) -> None:
    """Tell the current observer of an access."""
    observer = OBSERVER.get()
    if observer is not None:
        observer.touched(access, elements)
