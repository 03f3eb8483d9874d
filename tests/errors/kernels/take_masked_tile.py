"""A masked take of a tile."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.take(t, pl.arange(3), mask=pl.arange(3) > 1)
