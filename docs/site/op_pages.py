"""Op pages: each op with its signature, a kernel that runs, and a picture of what that touches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from itertools import groupby
from math import prod

import numpy as np
from markup import Entry, Page, coloured, fragment
from rank_examples import Argument, ranked_kernel, touched_by_ranks

import tilewright.language as pl
from tilewright.core.op import OpSpec
from tilewright.core.types import static_shape
from tilewright.errors import TilewrightError
from tilewright.explore.page import Access
from tilewright.explore.watched_turns import watched
from tilewright.frontend.programs import as_program
from tilewright.ops.pipes import PIPES
from tilewright.ops.registry import specs
from tilewright.tools.reference import entry, heading, noun_of

PARAMETERS = {
    "x": "x: pl.Tensor[[16, 32], pl.FP32]",
    "y": "y: pl.Tensor[[16, 32], pl.FP32]",
    "out": "out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
    "square": "square: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]",
}
"""What examples are about: those that one names are the parameters of its kernel."""
HEADING = "import tilewright.language as pl\n\n@pl.function(type=pl.FunctionType.InCore)\ndef example"
TILES = {"a": "a = pl.load(x, [0, 0], [16, 32])", "b": "b = pl.load(y, [0, 0], [16, 32])"}
CELL, LETTER = 6, 7
UNTOUCHED = '<p class="untouched">It touches no element of an argument: there is nothing to draw.</p>'
GROUP = """import tilewright.language as pl

Square = pl.Tensor[[16, 16], pl.FP32]

@pl.program
class Together:
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, x: Square, out: pl.InOut[Square]) -> Square:
        pl.tpush_to_aic(pl.load(x, [0, 0], [16, 16]) * 2.0, split=0)
        product: pl.Tile[[16, 16], pl.FP32] = pl.tpop_from_aic(split=0)
        out = pl.store(product + 1.0, [0, 0], out)
        pl.tfree_to_aic(product, split=0)
        return out

    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, x: Square, out: pl.InOut[Square]) -> Square:
        doubled: pl.Tile[[16, 16], pl.FP32] = pl.tpop_from_aiv(split=0)
        pl.tpush_to_aiv(pl.matmul(doubled, doubled), split=0)
        pl.tfree_to_aiv(doubled, split=0)
        return out

    @pl.function(type=pl.FunctionType.Group)
    def group(self, x: Square, out: pl.InOut[Square]) -> Square:
        out = self.vector(x, out)
        out = self.cube(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def example(self, x: Square, out: pl.InOut[Square]) -> Square:
        out = self.group(x, out)
        return out
"""
"""Two cores that hand each other tiles."""
RANKS = "Two ranks run it: `example(x, y, config=RunConfig(device_ids=[0, 1]))`, each on its row of `x` and `y`."


def op_pages() -> Iterator[Page]:
    """Yield a page for each noun that ops are about."""
    named = sorted((spec for spec in specs() if spec.has_a_name), key=noun_of)
    for noun, group in groupby(named, noun_of):
        yield _page(noun, list(group))


def _page(noun: str, members: list[OpSpec]) -> Page:
    about, url = heading(noun), f"ops/{noun}.html"
    parts = [f"<h1>{escape(noun.replace('_', ' '))}</h1>", fragment(about)]
    parts += [_section(spec) for spec in members]
    headings = [(2, f"pl.{spec.name}", spec.name) for spec in members]
    found = [Entry(f"pl.{spec.name}", f"{url}#{spec.name}", "Ops", spec.doc[:300]) for spec in members]
    return Page(url, noun.replace("_", " "), "Ops", "".join(parts), headings, found)


def _section(spec: OpSpec) -> str:
    text = re.sub(r"^#+ .*\n", "", entry(spec))
    said = text.rpartition("\n```python\n")[0] if spec.example and text.count("```python") > 1 else text
    parts = [f'<h2 id="{escape(spec.name)}"><code>pl.{escape(spec.name)}</code></h2>', fragment(said)]
    kernel = kernel_of(spec)
    if kernel:
        parts += ["<h3>Example</h3>", coloured(kernel, "python"), picture(touched(kernel))]
    elif ranked := ranked_kernel(spec, noun_of(spec)):
        parts += ["<h3>Example</h3>", coloured(ranked, "python"), fragment(RANKS), picture(touched_by_ranks(ranked))]
    return "".join(parts)


def kernel_of(spec: OpSpec) -> str:
    """Return a whole kernel that uses an op, or nothing where one op alone makes none."""
    if spec.name in PIPES:
        return GROUP
    if spec.example:
        return _kernel(spec.example.replace("{name}", spec.name))
    if spec.family not in ("elementwise", "reduction"):
        return ""
    return next((kernel for kernel in map(_kernel, _ways(spec)) if _is_read(kernel)), "")


def _ways(spec: OpSpec) -> Iterator[str]:
    """Yield ways to store what an op gives: of floats, of a float and a number, a mask, of integers."""
    count = sum(1 for operand in spec.operands if not operand.name.startswith("tmp"))
    given = ", ".join(("a", "b", "a")[:count])
    yield f"pl.store(pl.{spec.name}({given}), [0, 0], out)"
    yield f"pl.store(pl.{spec.name}(a, 0.5), [0, 0], out)"
    yield f"pl.store(pl.where(pl.{spec.name}({given}), a, 0.0), [0, 0], out)"
    integers = given.replace("a", "i").replace("b", "j")
    casts = "i = pl.cast(a, pl.INT32)\n" + ("j = pl.cast(b, pl.INT32)\n" if "j" in integers else "")
    yield f"{casts}pl.store(pl.cast(pl.{spec.name}({integers}), pl.FP32), [0, 0], out)"


def _kernel(example: str) -> str:
    lines = [*(line for name, line in TILES.items() if _names(example, name)), *example.splitlines()]
    body = "".join(f"    {line}\n" for line in lines)
    params = [declared for name, declared in PARAMETERS.items() if _names(body, name)]
    listed = ", ".join(params) if len(params) < 3 else "".join(f"\n    {param}," for param in params) + "\n"
    return f"{HEADING}({listed}):\n{body}"


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}(?!\w)", text) is not None


def _is_read(kernel: str) -> bool:
    try:
        pl.parse(kernel)
    except TilewrightError:
        return False
    return True


def touched(kernel: str) -> Access:
    """Return what a kernel touches of its arguments."""
    rng = np.random.default_rng(1)
    program = as_program(pl.parse(kernel))
    shapes = [static_shape(param.type.shape) for param in program["example"].params]
    arguments = [Argument(rng.uniform(0.5, 2.0, shape).astype(np.float32)) for shape in shapes]
    with redirect_stdout(StringIO()):  # what an example prints is not ours to say
        return watched(program, "example", arguments, lambda span: 0)


def picture(access: Access) -> str:
    """Return the arguments that are touched, and where, as one drawing; a line that says so where none are."""
    parts: list[str] = []
    left, height = 0, 0
    for number, argument in enumerate(access.arguments):
        marks = _marks(access, number)
        if marks:
            columns = argument.shape[-1]
            rows, title = prod(argument.shape[:-1]), f"{argument.name} {'x'.join(map(str, argument.shape))}"
            parts.append(_drawn(title, rows, columns, marks, left))
            left += max(columns * CELL, len(title) * LETTER) + 24
            height = max(height, rows * CELL + 18)
    if not parts:
        return UNTOUCHED
    drawing = (
        f'<svg viewBox="0 0 {max(left - 24, 1)} {height}" width="{max(left - 24, 1)}" height="{height}" role="img">'
    )
    legend = '<span class="read">read</span> <span class="write">written</span> <span class="both">both</span>'
    return f'<figure class="touched">{drawing}{"".join(parts)}</svg><figcaption>{legend}</figcaption></figure>'


def _marks(access: Access, number: int) -> dict[tuple[int, int], str]:
    """Return how each run of elements of an argument is touched."""
    found: dict[tuple[int, int], str] = {}
    for turn in access.turns:
        for touch in turn.touches:
            if touch.argument == number:
                kind = "read" if touch.access == "reads" else "write"
                for start, stop in touch.runs:
                    found[start, stop] = kind if found.get((start, stop), kind) == kind else "both"
    return found


def _drawn(title: str, rows: int, columns: int, marks: dict[tuple[int, int], str], left: int) -> str:
    boxes = [f'<text x="{left}" y="11">{escape(title)}</text>']
    boxes.append(f'<rect class="none" x="{left}" y="16" width="{columns * CELL}" height="{rows * CELL}"/>')
    for (start, stop), kind in marks.items():
        for row in range(start // columns, (stop - 1) // columns + 1):
            first, last = max(start, row * columns) % columns, (min(stop, (row + 1) * columns) - 1) % columns + 1
            boxes.append(
                f'<rect class="{kind}" x="{left + first * CELL}" y="{16 + row * CELL}" '
                f'width="{(last - first) * CELL - 1}" height="{CELL - 1}"/>'
            )
    return "".join(boxes)
