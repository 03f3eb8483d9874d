"""A tile as large as the run says."""

import tilewright.language as pl

EXPECTED = "NotStaticError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    tile = pl.load(x, [0, 0], [n, 64])
