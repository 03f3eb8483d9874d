"""Architectures: which machine each function of a module is for.

The nearest module around it says so in `pto.target_arch`, or else whoever compiles it; A2/A3 where nobody does.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.pto.elements import A3, A5
from tilewright.pto.errors import PtoAttributeError
from tilewright.pto.module import Func, Module

MACHINES = ("a2", A3, "a2a3", A5)
"""The machines that there are; all but the last have the rules of A2/A3."""


def architectures(module: Module, target: str) -> Iterator[tuple[Func, tuple[str, str]]]:
    """Yield every function with its architecture, and how that is said; PtoAttributeError where there is none such."""
    said = str(module.attributes.get("pto.target_arch", target))
    if said and said not in MACHINES:
        listed = ", ".join(f"`{name}`" for name in MACHINES)
        help = (
            f"did you mean `{said.lower()}`?" if said.lower() in MACHINES else f"`pto.target_arch` is one of {listed}"
        )
        raise PtoAttributeError(f"there is no machine `{said}`", spans=(module.span,), help=help)
    for item in module.items:
        if isinstance(item, Module):
            yield from architectures(item, said)
        else:
            yield item, (A5 if said == A5 else A3, said)
