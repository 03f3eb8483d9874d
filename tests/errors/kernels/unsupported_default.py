"""A parameter with a default."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32] = 4):
    pass
