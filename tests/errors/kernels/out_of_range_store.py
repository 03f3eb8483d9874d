"""A store past the end of its tensor."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(tile, [0, 32], out)
