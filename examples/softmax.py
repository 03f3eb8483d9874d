"""Softmax over the rows of a tensor with any number of rows: the kernel to read first, and what `make demo` runs."""

import statistics
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

import tilewright.language as pl
from tilewright import ir

M = pl.dynamic("M")
ROWS, COLS = 32, 1024

Matrix = pl.Tensor[[M, COLS], pl.FP32]


@pl.jit
def softmax(x: Matrix, out: pl.Out[Matrix]):
    for row in pl.parallel(0, M, ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [row, 0], [ROWS, COLS])
            e = pl.exp(tile - pl.row_max(tile))
            pl.store(e / pl.row_sum(e), [row, 0], out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    return (4 * torch.randn(1000 + seed, COLS, generator=torch.Generator().manual_seed(seed)),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def main() -> None:
    (x,) = make_inputs()
    # a call would find what an earlier process left on disk; `ir.compile` always compiles
    first, again = (timed(lambda: ir.compile(softmax.specialize(x).program))[0] for _ in range(2))
    y = softmax(x)
    error = (y - reference(x)).abs().max()
    torch.testing.assert_close(y, reference(x))

    written = Path(__file__).read_text(encoding="utf-8").split("\n\n\n")[1]
    loop = softmax.specialize(x).program.as_python(concise=True).partition("        for ")
    facts = Table.grid(padding=(0, 3))
    facts.add_column(style="dim")
    facts.add_row("tiles", f"x {list(x.shape)}: {len(x) // ROWS} of {ROWS} rows, and a last one with {len(x) % ROWS}")
    facts.add_row("result", f"[green]{error:.1e}[/] at most from torch.softmax; a row sums to {y[0].sum():.6f}")
    facts.add_row("compile", f"{again:.0f} ms; the first in a process loads LLVM too: {first:.0f} ms")
    facts.add_row("run", race())
    facts.add_row("next", "examples/attention.py: this softmax, a block of keys at a time")
    facts.add_row("", "examples/dynamic_valid_shape.py: any number of columns too")

    console = Console()
    console.print(code(written, "what you write"))
    console.print(
        code(textwrap.dedent(loop[1] + loop[2]).rstrip(), "what the compiler reads: one op a line, all typed")
    )
    console.print(Padding(facts, (0, 2)))


def race(rows: int = 16 * 1024, rounds: int = 15) -> str:
    """Say how long a large softmax takes here and in torch; they take turns, so that a busy machine slows both."""
    x = torch.randn(rows, COLS)
    out, expected = torch.empty_like(x), torch.empty_like(x)
    turns = [
        (timed(lambda: softmax(x, out))[0], timed(lambda: torch.softmax(x, dim=-1, out=expected))[0])
        for _ in range(rounds)
    ]
    torch.testing.assert_close(out, expected)
    ours, theirs = (statistics.median(times) for times in zip(*turns, strict=True))
    setting = f"x [{rows}, {COLS}], {torch.get_num_threads()} threads, outputs preallocated, median of {rounds}"
    return f"{ours:.1f} ms, torch.softmax {theirs:.1f} ms: [green]{theirs / ours:.2f}[/] times its speed\n{setting}"


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the milliseconds an action takes, and its result."""
    start = time.perf_counter()
    result = action()
    return 1e3 * (time.perf_counter() - start), result


def code(text: str, title: str) -> Panel:
    return Panel(
        Syntax(text, "python", background_color="default"), title=title, title_align="left", border_style="dim"
    )


if __name__ == "__main__":
    main()
