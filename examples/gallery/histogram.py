"""A histogram: how many numbers fall into each of many bins.

Each number counts itself, in its own place, with an atomic addition. That many numbers want the same bin at the same
time is what atomics are for.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

NUMBERS = 4096


@pl.jit
def histogram(x: pl.Tensor, low: float, high: float, counts: pl.InOut[pl.Tensor]):
    bins = counts.shape[0]
    for first in pl.parallel(0, x.shape[0], NUMBERS):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [first], [NUMBERS])
            place = pl.cast(pl.floor((t - low) * (bins / (high - low))), pl.INT32)
            pl.atomic_add(counts, pl.minimum(place, bins - 1), 1, mask=(t >= low) & (t <= high))
    return counts


def make_inputs(seed: int = 0, size: int = 10000, bins: int = 64) -> tuple[torch.Tensor, float, float, torch.Tensor]:
    x = torch.rand(size, generator=torch.Generator().manual_seed(seed)) * 5 - 1
    return x, 0.0, 4.0, torch.zeros(bins, dtype=torch.int32)


def reference(x: torch.Tensor, low: float, high: float, counts: torch.Tensor) -> torch.Tensor:
    return counts + torch.histc(x, len(counts), low, high).int()


def main() -> None:
    show("histogram", histogram, reference, make_inputs(size=1 << 20, bins=256))


if __name__ == "__main__":
    main()
