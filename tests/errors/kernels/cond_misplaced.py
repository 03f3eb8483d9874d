"""A loop condition outside a pl.while_ loop."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    for i in pl.range(4):
        pl.cond(n > 0)
