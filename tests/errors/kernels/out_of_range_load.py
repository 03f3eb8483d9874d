"""A load past the end of its tensor."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [32, 0], [64, 64])
