"""A histogram: how often each of 256 numbers occurs, counted by as many threads as there are.

Every tile of numbers is a tile of indices. `pl.atomic_add` counts in private copies of so few bins, and adds those to
the output at the end: threads meet once per tile.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

BINS, TILE = 256, 16384


@pl.jit
def histogram(x: pl.Tensor, counts: pl.Out[pl.Tensor[[BINS], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.full([BINS], dtype=pl.INT32, value=0), [0], counts)
    for i in pl.parallel(0, x.shape[0], TILE):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.atomic_add(counts, pl.load(x, [i], [TILE]), 1)
    return counts


def make_inputs(seed: int = 0, size: int = 50_000) -> tuple[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(0, BINS, (size,), dtype=torch.int32, generator=generator),)


def make_output(x: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty(BINS, dtype=torch.int32),)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.bincount(x, minlength=BINS).int()


def main() -> None:
    inputs = make_inputs(size=1_000_000)
    show("histogram", histogram, reference, inputs, make_output(*inputs))


if __name__ == "__main__":
    main()
