"""A number compared by identity."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32], out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    if n is t:
        t = t * 2.0
