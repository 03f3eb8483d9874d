"""A static assertion about a run-time value."""

import tilewright.language as pl

EXPECTED = "NotStaticError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    pl.static_assert(n > 0, "n must be positive")
