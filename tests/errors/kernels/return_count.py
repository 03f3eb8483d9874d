"""More returned values than the function says."""

import tilewright.language as pl

EXPECTED = "ReturnMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix) -> Matrix:
    return x, x
