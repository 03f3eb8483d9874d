"""Random numbers: a million of them, uniform and normal, drawn from a seed."""

from collections.abc import Callable

import torch
from contenders import ours
from contest import EAGER, OURS, Contest, Field, Run, Work

import tilewright.language as pl
from tilewright.core.program import Program

N, TILE = 1 << 20, 8192


def program(normal: bool) -> Program:
    @pl.program
    class Drawn:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, out: pl.Out[pl.Tensor[[N], pl.FP32]]) -> pl.Tensor[[N], pl.FP32]:
            for i in pl.parallel(0, N, TILE):
                with pl.at(level=pl.Level.CORE_GROUP):
                    drawn = pl.randn(7, [TILE], i) if normal else pl.rand(7, [TILE], i)
                    out = pl.store(drawn, [i], out)
            return out

    return Drawn


def drawing(normal: bool) -> Callable[[], Field]:
    """Return the contest of drawing numbers, which are others in torch: ours are held against themselves."""

    def enter() -> Field:
        run, eager = ours(program(normal), out=torch.empty(N)), torch.empty(N)
        expected = run().clone()

        def theirs() -> torch.Tensor:
            (torch.randn if normal else torch.rand)(N, out=eager)
            return expected

        runs: dict[str, Run] = {OURS: run, EAGER: theirs}
        return Field(expected, runs, rtol=0, atol=0)

    return enter


ROWS = (
    Contest("rand of 1 M", drawing(normal=False), Work(bytes=4 * N), target=2.0),
    Contest("randn of 1 M", drawing(normal=True), Work(bytes=4 * N), target=1.0),
)
