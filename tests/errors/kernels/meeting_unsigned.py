"""Tiles of integers that no type holds both of."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    r = pl.cast(tile, pl.UINT64) + pl.cast(tile, pl.INT64)
