"""A slice past the end of its tensor."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    window = pl.slice(x, [16, 16], [56, 0])
