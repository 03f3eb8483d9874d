"""Masks: what is chosen element by element, and a triangle of a matrix."""

from collections.abc import Callable

import torch
from contenders import ours
from contest import EAGER, OURS, Contest, Field, Run, Work

import tilewright.language as pl
from tilewright.core.program import Program

N, TILE = 2048, 16
Matrix = pl.Tensor[[N, N], pl.FP32]


@pl.program
class Band:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, N, TILE):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [row, 0], [TILE, N])
                out = pl.store(pl.where((t > -1) & (t < 1), t, 0.0), [row, 0], out)
        return out


@pl.program
class Triangle:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, N, TILE):
            with pl.at(level=pl.Level.CORE_GROUP):
                seen = pl.arange(N) <= row + pl.iota([TILE, 1], axis=0)
                out = pl.store(pl.load(x, [row, 0], [TILE, N], mask=seen), [row, 0], out)
        return out


def choosing(program: Program, theirs: Callable[[torch.Tensor, torch.Tensor], object]) -> Callable[[], Field]:
    """Return the contest of a choice between the elements of a matrix and zero."""

    def enter() -> Field:
        x, room = torch.randn(N, N), torch.empty(N, N)

        def eager() -> torch.Tensor:
            theirs(x, room)
            return room

        runs: dict[str, Run] = {OURS: ours(program, x, out=torch.empty(N, N)), EAGER: eager}
        return Field(eager().clone(), runs, rtol=0, atol=0)

    return enter


def band(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.where((x > -1) & (x < 1), x, torch.zeros(()), out=out)


def triangle(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.tril(x, out=out)


ROWS = (
    Contest("where of a band, 2048²", choosing(Band, band), Work(bytes=8 * N * N), target=1.0),
    Contest("tril by a masked load, 2048²", choosing(Triangle, triangle), Work(bytes=8 * N * N), target=1.0),
)
