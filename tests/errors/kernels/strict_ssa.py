"""A name bound twice where that was forbidden."""

import tilewright.language as pl

EXPECTED = "SSAViolationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(strict_ssa=True)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    tile = pl.exp(tile)
