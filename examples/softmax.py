"""Softmax over the rows of a tensor with any number of rows: the kernel to read first, and what `make demo` runs."""

import textwrap
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

import tilewright.language as pl
from tilewright import ir

M = pl.dynamic("M")
ROWS, COLS = 32, 128

Matrix = pl.Tensor[[M, COLS], pl.FP32]


@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, M, ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.load(x, [row, 0], [ROWS, COLS])
                e = pl.exp(tile - pl.row_max(tile))
                out = pl.store(e / pl.row_sum(e), [row, 0], out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor]:
    return (4 * torch.randn(1000 + seed, COLS, generator=torch.Generator().manual_seed(seed)),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def main() -> None:
    (x,) = make_inputs()
    start = time.perf_counter()
    softmax = ir.compile(Softmax)
    compiled = time.perf_counter()
    y = softmax(x)
    done = time.perf_counter()
    error = (y - reference(x)).abs().max()
    torch.testing.assert_close(y, reference(x))

    written = Path(__file__).read_text(encoding="utf-8").split("\n\n\n")[1]
    loop = Softmax.as_python(concise=True).partition("        for ")
    facts = Table.grid(padding=(0, 3))
    facts.add_column(style="dim")
    facts.add_row("tiles", f"x {list(x.shape)}: {len(x) // ROWS} of {ROWS} rows, and a last one with {len(x) % ROWS}")
    facts.add_row("result", f"[green]{error:.1e}[/] at most from torch.softmax; a row sums to {y[0].sum():.6f}")
    facts.add_row("time", f"{1e3 * (compiled - start):.1f} ms to compile, {1e3 * (done - compiled):.1f} ms to run")
    facts.add_row("next", "examples/attention.py: this softmax, a block of keys at a time")
    facts.add_row("", "examples/dynamic_valid_shape.py: columns without a fixed number too")

    console = Console()
    console.print(code(written, "what you write"))
    console.print(
        code(textwrap.dedent(loop[1] + loop[2]).rstrip(), "what the compiler reads: one op a line, all typed")
    )
    console.print(Padding(facts, (0, 2)))


def code(text: str, title: str) -> Panel:
    return Panel(
        Syntax(text, "python", background_color="default"), title=title, title_align="left", border_style="dim"
    )


if __name__ == "__main__":
    main()
