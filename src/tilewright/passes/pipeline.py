"""The pipeline: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.core.program import Program
from tilewright.passes import cse, dce, inline, simplify, ssa, unroll


@dataclass(frozen=True)
class Pass:
    """A named step from program to program."""

    name: str
    run: Callable[[Program], Program]


DEFAULT = (
    Pass("ConvertToSSA", ssa.run),
    Pass("InlineFunctions", inline.run),
    Pass("UnrollLoops", unroll.run),
    Pass("Simplify", simplify.run),
    Pass("CommonSubexpressions", cse.run),
    Pass("DeadCode", dce.run),
)
"""The passes of the default strategy."""
