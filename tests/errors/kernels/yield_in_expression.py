"""A yield inside an expression."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n > 0:
        r = pl.yield_(n) + 1
