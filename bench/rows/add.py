"""add: the sum of two matrices, all of it memory traffic."""

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
    class Add:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, y: Matrix, out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, n, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    total = pl.load(x, [row, 0], [rows, n]) + pl.load(y, [row, 0], [rows, n])
                    out = pl.store(total, [row, 0], out)
            return out

    return Add


def enter() -> Field:
    x, y = torch.randn(2, N, N)
    eager, compiled = output(N, N), output(N, N)
    return Field(
        x + y,
        {
            OURS: ours(program(N), x, y, out=output(N, N)),
            EAGER: lambda: torch.add(x, y, out=eager),
            INDUCTOR: inductor(lambda x, y, out: torch.add(x, y, out=out), x, y, compiled),
        },
        rtol=0,
        atol=0,
    )


ROWS = (Contest(f"add {N}²", enter, Work(bytes=3 * 4 * N * N), target=1.2),)
