"""The life of a kernel: a page that shows one small program at every stage."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tilewright.language as pl
from tilewright.arrays import np
from tilewright.core.program import Program
from tilewright.frontend.text import executed
from tilewright.passes.context import CallbackInstrument, PassContext
from tilewright.passes.manager import PassManager
from tilewright.passes.pipeline import Pass
from tilewright.tools.markdown import code, generated, page

SOURCE = """
import tilewright.language as pl

ROWS = 32

@pl.jit.inline
def exps(t):
    return pl.exp(t - pl.row_max(t))

@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], ROWS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="some_rows"):
            t = x[row : row + ROWS, :]
            out[row : row + ROWS, :] = exps(t) / pl.row_sum(exps(t))
    return out
"""
"""Softmax as a textbook writes it: the exponentials stand there twice."""


@dataclass(frozen=True)
class Stage:
    """The program as one pass left it."""

    each: Pass
    before: Program
    after: Program

    @property
    def changed(self) -> bool:
        """Whether the pass found something to do."""
        return str(self.before) != str(self.after)


def stages(program: Program) -> list[Stage]:
    """Return the program after every pass of the default strategy."""
    manager = PassManager.get_strategy()
    left = [program]
    with PassContext(instruments=[CallbackInstrument(after=lambda _, after: left.append(after))]):
        manager.run_passes(program)
    return [Stage(each, *pair) for each, *pair in zip(manager.passes, left, left[1:], strict=False)]


def summary(each: Pass) -> str:
    """Return what a pass says it does, from the head of its file."""
    return (inspect.getdoc(sys.modules[each.run.__module__]) or each.name).partition("\n\n")[0]


def kernel() -> pl.JITFunction:
    """Return the kernel of the page."""
    return executed(SOURCE, {"pl": pl}, "softmax.py")[0]["softmax"]


def argument() -> Any:
    """Return the tensor it is called with."""
    return np.resize(np.arange(7, dtype=np.float32), (128, 64))


def life_page() -> str:
    """Return the whole page."""
    softmax = kernel()
    program = softmax.specialize(argument()).program
    found = stages(program)
    return page(
        generated("The life of a kernel", "src/tilewright/tools/life.py and the passes themselves"),
        "One kernel, from the text its author wrote to the result. Every stage below is real output, and every one "
        "is Python that `pl.parse` reads back. `tilewright show FILE --all` does this to any kernel whose annotations "
        "say what it is called with.",
        "## Written",
        "A loop over blocks of rows, and a `pl.at` scope, which is what runs on a core. This one computes on slices "
        "of tensors, as a textbook would: the exponentials stand there twice.",
        code(SOURCE),
        "## Specialized",
        "Nothing of it runs. The first call, `softmax(x)` with 128 rows of 64 numbers, reads the text with the shape "
        "and dtype of `x` in hand: extents have become numbers, the inline function is written out, and every "
        "operation is an op with a type, which `as_python(concise=True)` leaves out here. "
        "`softmax.specialize(x).program` is this program.",
        code(text_of(program)),
        *_passes(found),
        "## Run",
        *_result(softmax),
    )


def text_of(program: Program) -> str:
    """Return a program's concise text without the lines every program starts with."""
    return program.as_python(concise=True).partition("\n\n")[2]


def _passes(found: list[Stage]) -> Iterator[str]:
    idle = list[Stage]()
    for stage in found:
        if not stage.changed:
            idle.append(stage)
            continue
        yield from _idle(idle)
        idle.clear()
        yield page(f"## After {stage.each.name}", summary(stage.each), code(text_of(stage.after)))
    yield from _idle(idle)


def _idle(idle: list[Stage]) -> Iterator[str]:
    """Yield the passes that looked and found nothing, in one paragraph."""
    if idle:
        yield page("Nothing to do in this program:", "\n".join(f"- {s.each.name}. {summary(s.each)}" for s in idle))


def _result(softmax: pl.JITFunction) -> Iterator[str]:
    x = argument()
    y = softmax(x)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    yield (
        "`softmax.lower(x)` is the last stage above. The call goes on to make native code of it, runs that on `x`, and "
        "keeps it for the next call with such an argument. `softmax.compile(x)` has the rest of the way: "
        '`.stages["fusion"]` says which ops share a loop over rows, then come `["llvm"]`, `["assembly"]` and '
        '`["object"]`.'
    )
    yield code("x = np.resize(np.arange(7, dtype=np.float32), (128, 64))\ny = softmax(x)")
    rows = "\n".join(" ".join(f"{value:.4f}" for value in row[:4]) + " ..." for row in y[:3])
    yield code(f"{rows}\n\neach row sums to {y.sum(axis=1).mean():.4f}", "text")
