"""Providers: what a layer above hands down to this one, loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_providers: dict[str, Callable[[], Any]] = {}


def provide(name: str, load: Callable[[], Any]) -> None:
    """Let `provided(name)` be what `load` returns."""
    _providers[name] = load


def provided(name: str) -> Any:
    """Return what goes by a name, None where nobody has provided it."""
    load = _providers.get(name)
    return None if load is None else load()
