"""A slice that runs backwards."""

import tilewright.language as pl

EXPECTED = "SubscriptError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    window = x[64:0:-2, :]
