"""A value that only one branch binds."""

import tilewright.language as pl

EXPECTED = "OutOfScopeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n > 0:
        tile = pl.load(x, [0, 0], [64, 64])
    r = pl.exp(tile)
