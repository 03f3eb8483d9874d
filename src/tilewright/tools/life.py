"""The life of a kernel: a page that walks one small program down the folders, and shows it at every stage."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tilewright.language as pl
from tilewright.arrays import np
from tilewright.core.program import Program
from tilewright.frontend.text import executed
from tilewright.passes.stages import Stage, file_of, stages, summary
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


def says(path: str) -> str:
    """Return the first sentence of a file of the package, which names what the file owns."""
    doc = ast.get_docstring(ast.parse((Path(__file__).parents[1] / path).read_bytes())) or path
    return " ".join(doc.partition("\n\n")[0].split())


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
    return page(
        generated("The life of a kernel", "src/tilewright/tools/life.py and the files it names"),
        "One kernel, from the text its author wrote to the result. The way leads down the folders of `src/tilewright` "
        "and never back up; each step names its file. Every program below is Python that `pl.parse` reads back, and "
        "`tilewright show FILE --all` shows those of any kernel whose annotations say what it is called with.",
        "## Written",
        "A loop over blocks of rows, and a `pl.at` scope, which is what runs on a core. This one computes on slices "
        "of tensors, as a textbook would: the exponentials stand there twice.",
        code(SOURCE),
        "## Read",
        *_folder("frontend", "capture", "walk/walker", "names", "specialize"),
        "Nothing of it runs. The first call, `softmax(x)` with 128 rows of 64 numbers, has it read with the shape "
        "and dtype of `x` in hand: extents have become numbers, the inline function is written out, and every "
        "operation is an op with a type, which `as_python(concise=True)` leaves out here. "
        "`softmax.specialize(x).program` is this program.",
        code(text_of(program)),
        "## Lowered",
        *_folder("passes", "pipeline", "manager"),
        *_passes(stages(program)),
        "`softmax.lower(x)` is the last of these programs.",
        "## Understood",
        *_folder("interpret", "machine"),
        "Each program above can be run here, slowly, with the same answer. A call on a processor goes on.",
        "## Emitted",
        *_folder("backends", "interface", "cpu/host/program", "cpu/compute/tiles", "cpu/compute/vectormath"),
        'The program is one text of LLVM now, `softmax.compile(x).stages["llvm"]`: an entry that takes its arguments '
        "as words, the loop over blocks as a parallel region, and the kernel, its ops fused into one loop over rows. "
        '`stages["fusion"]` says which ops share a loop, and why it ends; `stages["tiles"]` where it '
        "works in tiles that suit the processor better than those of the program: of matrices that are multiplied "
        "(`widen`), and of what is computed element by element (`long_rows`).",
        "## Assembled and loaded",
        *_folder("native", "assemble", "loader", "threads"),
        '`stages["assembly"]` and `stages["object"]` show what LLVM made of it. Nothing is linked and no file is '
        "written: the object's sections are mapped, and its symbols are addresses.",
        "## Kept",
        *_folder("keep", "digest", "reads", "store"),
        "The object goes to disk under a key of everything it was made from: the arguments' types, the code of "
        "`softmax` and `exps`, the value of `ROWS`, the compiler. The next process comes in here, and loads no "
        "compiler. See [the cache](cache.md).",
        "## Called",
        *_folder("call", "binding", "warm", "words", "guards", "machine_code"),
        "A later call with such an argument is all here, in machine code that reads the tensor, looks whether `ROWS` "
        "is still 32, and jumps to the entry. See [warm calls](warm-calls.md).",
        "## Held",
        *_folder("programs", "artifact", "program", "entry"),
        "`softmax.compile(x)` is this object: callable, and the path of a folder with every text above in it. See "
        "[compiled programs](compiled-programs.md).",
        "## Returned",
        *_folder("jit", "function", "session"),
        *_result(softmax),
    )


def _folder(name: str, *files: str) -> Iterator[str]:
    """Yield what a folder is, and the files of it that the way leads through, in their own words."""
    yield f"`{name}/`: {says(f'{name}/__init__.py')}"
    yield "\n".join(f"- `{name}/{file}.py`. {says(f'{name}/{file}.py')}" for file in files)


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
        heading = f"### After {stage.each.name}"
        yield page(heading, f"`{file_of(stage.each)}`. {summary(stage.each)}", code(text_of(stage.after)))
    yield from _idle(idle)


def _idle(idle: list[Stage]) -> Iterator[str]:
    """Yield the passes that looked and found nothing, in one paragraph."""
    if idle:
        lines = [f"- {s.each.name}, `{file_of(s.each)}`. {summary(s.each)}" for s in idle]
        yield page("Nothing to do in this program:", "\n".join(lines))


def _result(softmax: pl.JITFunction) -> Iterator[str]:
    x = argument()
    y = softmax(x)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    yield "The session is who sent the kernel down this way, once, and the call returns what the entry wrote:"
    yield code("x = np.resize(np.arange(7, dtype=np.float32), (128, 64))\ny = softmax(x)")
    rows = "\n".join(" ".join(f"{value:.4f}" for value in row[:4]) + " ..." for row in y[:3])
    yield code(f"{rows}\n\neach row sums to {y.sum(axis=1).mean():.4f}", "text")
