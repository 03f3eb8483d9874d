"""Architectures: which machine each function of a module is for.

The nearest module around it says so in `pto.target_arch`, or else whoever compiles it; A2/A3 where nobody does.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.pto.elements import A3, A5
from tilewright.pto.module import Func, Module


def architectures(module: Module, target: str) -> Iterator[tuple[Func, tuple[str, str]]]:
    """Yield every function with its architecture, and how that is said."""
    said = str(module.attributes.get("pto.target_arch", target))
    for item in module.items:
        if isinstance(item, Module):
            yield from architectures(item, said)
        else:
            yield item, (A5 if said == A5 else A3, said)


def architecture_of(module: Module, func: Func, target: str) -> str:
    """Return the architecture of one function."""
    return next((arch for each, (arch, _) in architectures(module, target) if each is func), A3)
