"""A list of rows."""

import tilewright.language as pl

EXPECTED = "SubscriptError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64], [7, 37])
    u = t[[0, 2]]
