"""A branch that yields twice."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n > 0:
        a = pl.yield_(n)
        b = pl.yield_(n)
    else:
        a = pl.yield_(n)
