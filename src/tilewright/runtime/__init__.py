"""Running programs: arguments, outputs, and the callable that `ir.compile` returns."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.runtime.compiler import compile as compile
    from tilewright.runtime.compiler import run as run
    from tilewright.runtime.config import RunConfig as RunConfig
    from tilewright.runtime.program import CompiledProgram as CompiledProgram

__all__ = ["CompiledProgram", "RunConfig", "compile", "run"]

_HOMES = {"CompiledProgram": "program", "RunConfig": "config", "compile": "compiler", "run": "compiler"}


def __getattr__(name: str) -> object:
    """Return a public name, loading its module: running a kept program takes no compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
