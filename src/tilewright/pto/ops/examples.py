"""Examples of every op: its own, or the first of another op whose kernel has it."""

from __future__ import annotations

import re
from functools import cache

from tilewright.pto.example import Example
from tilewright.pto.ops.registry import OPS
from tilewright.records import record

_NAMED = re.compile(r"\b(?:arith|scf|func|pto|llvm|builtin)\.[a-z][\w.]*")


@record
class Shown:
    """An example, and the op that it is an example of."""

    op: str
    example: Example

    @property
    def text(self) -> str:
        """The kernel, whole."""
        return self.example.text(self.op)


def own(name: str) -> Shown | None:
    """Return the example that an op's declaration has for it."""
    found = OPS[name].example
    if found is None or isinstance(found, str):
        return None
    if isinstance(found, Example):
        return Shown(name, found)
    short = name.partition(".")[2]
    return Shown(name, found[short]) if short in found else None


@cache
def _by_use() -> dict[str, Shown]:
    """Return for each op that stands in an example the first one it stands in."""
    found: dict[str, Shown] = {}
    for name in OPS:
        if shown := own(name):
            for used in _NAMED.findall(shown.text):
                found.setdefault(used, shown)
    return found


def shown_for(name: str) -> Shown | None:
    """Return an example that runs an op: its own, or another op's; None where there is none."""
    return own(name) or _by_use().get(name)
