"""matmul: a tile of the product at a time, the inner dimension in steps."""

import torch
from contenders import inductor, ours
from contest import EAGER, INDUCTOR, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program

N, TILE, STEP = 1024, 256, 256


def program(n: int, tile: int = TILE, step: int = STEP) -> Program:
    Matrix = pl.Tensor[[n, n], pl.FP32]

    @pl.program
    class Matmul:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: Matrix, b: Matrix, c: pl.Out[Matrix]) -> Matrix:
            for i in pl.parallel(0, n, tile):
                for j in pl.parallel(0, n, tile):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        acc = pl.matmul(pl.load(a, [i, 0], [tile, step]), pl.load(b, [0, j], [step, tile]))
                        for k in pl.range(step, n, step):
                            left, right = pl.load(a, [i, k], [tile, step]), pl.load(b, [k, j], [step, tile])
                            acc = pl.matmul_acc(acc, left, right)
                        c = pl.store(acc, [i, j], c)
            return c

    return Matmul


def enter() -> Field:
    a, b = torch.randn(2, N, N)
    eager, compiled = output(N, N), output(N, N)
    return Field(
        (a.double() @ b.double()).float(),
        {
            OURS: ours(program(N), a, b, out=output(N, N)),
            EAGER: lambda: torch.matmul(a, b, out=eager),
            INDUCTOR: inductor(lambda a, b, out: torch.matmul(a, b, out=out), a, b, compiled),
        },
        atol=1e-3,  # sums of a thousand products
    )


ROWS = (Contest(f"matmul {N}³", enter, Work(flops=2 * N**3), target=0.6),)
