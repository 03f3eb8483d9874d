"""A word of random numbers that is longer than one."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(out: pl.Out[Matrix]):
    t = pl.tile.random(1, 2, 3, 4, 5, 4294967296, [64, 64])
    return out
