"""A tile op the language does not have."""

import tilewright.language as pl

EXPECTED = "UnknownOpError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.tile.laod(x, [0, 0], [64, 64])
