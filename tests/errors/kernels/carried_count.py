"""Two carried names for one initial value."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    for i, (a, b) in pl.range(4, init_values=(n,)):
        a, b = pl.yield_(a, b)
