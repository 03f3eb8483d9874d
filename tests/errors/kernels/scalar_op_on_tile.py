"""The largest element of a tile, asked of the op that compares two numbers."""

import tilewright.language as pl

EXPECTED = "ArgumentCountError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(pl.max(tile), [0, 0], out)
