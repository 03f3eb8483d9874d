"""A tile stored into a tensor of another type."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: pl.Tensor[[64, 64], pl.INT32], out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(tile, [0, 0], out)
