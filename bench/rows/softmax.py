"""softmax: over the rows of a matrix."""

import torch
from contenders import inductor, ours
from contest import EAGER, INDUCTOR, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program

N, ROWS_PER_TILE = 4096, 16


def program(n: int, rows: int = ROWS_PER_TILE) -> Program:
    Matrix = pl.Tensor[[n, n], pl.FP32]

    @pl.program
    class Softmax:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, n, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    tile = pl.load(x, [row, 0], [rows, n])
                    e = pl.exp(pl.row_expand_sub(tile, pl.row_max(tile)))
                    out = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [row, 0], out)
            return out

    return Softmax


def enter() -> Field:
    x = torch.randn(N, N)
    eager, compiled = output(N, N), output(N, N)
    return Field(
        torch.softmax(x, -1),
        {
            OURS: ours(program(N), x, out=output(N, N)),
            EAGER: lambda: torch.softmax(x, -1, out=eager),
            INDUCTOR: inductor(lambda x, out: torch.softmax(x, -1, out=out), x, compiled),
        },
        rtol=1e-5,
        atol=0,
    )


ROWS = (Contest(f"softmax {N}²", enter, Work(bytes=2 * 4 * N * N), target=1.2),)
