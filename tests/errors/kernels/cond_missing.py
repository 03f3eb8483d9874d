"""A pl.while_ loop that does not start with its condition."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    for (k,) in pl.while_(init_values=(n,)):
        k = pl.yield_(k - 1)
