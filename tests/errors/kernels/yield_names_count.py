"""Two names for one yielded value."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n > 0:
        a, b = pl.yield_(1)
    else:
        a, b = pl.yield_(2)
