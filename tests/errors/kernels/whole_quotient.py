"""A quotient of loop indices, which has no fraction."""

import numpy as np

import tilewright.language as pl

EXPECTED = "WholeQuotientWarning"


@pl.jit
def kernel(x: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    for row in pl.range(8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [1, 64]) * (1 / (row + 1)), [row, 0], out)


kernel(np.ones((8, 64), np.float32))
