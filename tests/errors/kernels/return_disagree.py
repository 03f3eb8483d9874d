"""Two returns that disagree."""

import tilewright.language as pl

EXPECTED = "ReturnMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n > 0:
        return x
    return n
