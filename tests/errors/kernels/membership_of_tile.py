"""A tile looked for in a tuple."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    if t in (1.0, 2.0):
        t = t * 2.0
