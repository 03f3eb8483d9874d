"""A number called."""

import tilewright.language as pl

EXPECTED = "UncallableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


SIZE = 64


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = SIZE(4)
