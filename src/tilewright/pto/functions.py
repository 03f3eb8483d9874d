"""Functions: those of a module, what each of them can call, and what each is for, found once for all of them."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.pto.architectures import architectures
from tilewright.pto.machine.cores import kinds_of
from tilewright.pto.module import Func, Module
from tilewright.records import record


@record
class Functions:
    """The functions of a module."""

    scopes: dict[Func, dict[str, Func]]
    """What each function can call, by name."""
    kinds: Mapping[Func, str]
    """The core of each function that is for one alone."""
    machines: Mapping[Func, str]
    """The architecture that each function is for."""
    named: Mapping[str, Func]
    """The first function of each name that has a body."""


def functions_of(module: Module, target: str) -> Functions:
    """Return the functions of a module, for a machine where nobody says one."""
    scopes = dict(module.scopes())
    machines = {func: arch for func, (arch, _) in architectures(module, target)}
    named = {func.name: func for func in reversed(scopes) if func.body}
    return Functions(scopes, kinds_of(module), machines, named)
