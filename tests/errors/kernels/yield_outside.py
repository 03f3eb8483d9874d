"""A yield outside any loop or branch."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    r = pl.yield_(n)
