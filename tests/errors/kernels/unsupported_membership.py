"""A membership test."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n in (1, 2):
        tile = pl.load(x, [0, 0], [64, 64])
