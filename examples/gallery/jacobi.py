"""Jacobi's iteration for Laplace's equation: every inner point becomes the mean of its four neighbours, many times.

Two grids take turns. A tile reads four windows of the old grid, each shifted by one, and writes one of the new.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

ROWS = 16


@pl.jit.incore
def relax(old: pl.Tensor, row: pl.INDEX, new: pl.InOut[pl.Tensor]):
    columns = old.shape[1] - 2
    rows = pl.min(ROWS, old.shape[0] - 2 - row)
    above = pl.load(old, [row, 1], [ROWS, columns], valid_shape=[rows, columns])
    below = pl.load(old, [row + 2, 1], [ROWS, columns], valid_shape=[rows, columns])
    left = pl.load(old, [row + 1, 0], [ROWS, columns], valid_shape=[rows, columns])
    right = pl.load(old, [row + 1, 2], [ROWS, columns], valid_shape=[rows, columns])
    return pl.store((above + below + left + right) * 0.25, [row + 1, 1], new)


@pl.jit
def jacobi(x: pl.InOut[pl.Tensor], scratch: pl.InOut[pl.Tensor], steps: int):
    for _ in pl.range(steps // 2):
        for row in pl.parallel(0, x.shape[0] - 2, ROWS):
            scratch = relax(x, row, scratch)
        for row in pl.parallel(0, x.shape[0] - 2, ROWS):
            x = relax(scratch, row, x)
    return x


def make_inputs(seed: int = 0, size: int = 100, steps: int = 6) -> tuple[torch.Tensor, torch.Tensor, int]:
    x = torch.rand(size, size, generator=torch.Generator().manual_seed(seed))
    return x, x.clone(), steps


def reference(x: torch.Tensor, scratch: torch.Tensor, steps: int) -> torch.Tensor:
    x = x.clone()
    for _ in range(steps):
        x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.25
    return x


def main() -> None:
    inputs = make_inputs(size=1000, steps=20)
    show("jacobi", jacobi, reference, inputs)


if __name__ == "__main__":
    main()
