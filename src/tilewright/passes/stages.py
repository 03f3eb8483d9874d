"""Stages: a program as each pass left it, and what the pass says of itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.passes.context import CallbackInstrument, PassContext
from tilewright.passes.manager import PassManager
from tilewright.passes.pipeline import Pass
from tilewright.passes.strategy import OptimizationStrategy
from tilewright.records import record


@record
class Stage:
    """The program as one pass left it."""

    each: Pass
    before: Program
    after: Program

    @property
    def changed(self) -> bool:
        """Whether the pass found something to do."""
        return self.before is not self.after and str(self.before) != str(self.after)


@record
class Walk:
    """The passes that a program went through, and the one that refused it, with what that said."""

    stages: list[Stage]
    refused: Pass | None = None
    error: TilewrightError | None = None


def stages(program: Program) -> list[Stage]:
    """Return the program after every pass of the default strategy; what a pass raises is raised."""
    found = walked(program)
    if found.error is not None:
        raise found.error
    return found.stages


def walked(program: Program, strategy: OptimizationStrategy = OptimizationStrategy.Default) -> Walk:
    """Return the program after every pass, up to the one that refuses it."""
    manager, left = PassManager.get_strategy(strategy), [program]
    error = None
    with PassContext(instruments=[CallbackInstrument(after=lambda _, after: left.append(after))]):
        try:
            manager.run_passes(program)
        except TilewrightError as refusal:
            error = refusal
    found = [Stage(each, *pair) for each, *pair in zip(manager.passes, left, left[1:], strict=False)]
    return Walk(found, manager.passes[len(found)] if error is not None else None, error)


def file_of(each: Pass) -> str:
    """Return the file of a pass."""
    return each.run.__module__.removeprefix("tilewright.").replace(".", "/") + ".py"


def summary(each: Pass) -> str:
    """Return what a pass says it does: the first sentence of its file."""
    return " ".join(next(_paragraphs(each)).split())


def _paragraphs(each: Pass) -> Iterator[str]:
    yield from (sys.modules[each.run.__module__].__doc__ or file_of(each)).split("\n\n")
