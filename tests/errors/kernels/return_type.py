"""A returned value that is not what the function says."""

import tilewright.language as pl

EXPECTED = "ReturnMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix) -> Matrix:
    return pl.read(x, [0, 0])
