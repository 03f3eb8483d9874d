"""A loop that yields to no name."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    for i, (total,) in pl.range(4, init_values=(n,)):
        pl.yield_(total + 1)
