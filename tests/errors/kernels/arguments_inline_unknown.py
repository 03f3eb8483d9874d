"""A template called with a parameter it does not have."""

import tilewright.language as pl

EXPECTED = "ArgumentCountError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def twice(t, scale):
    return pl.mul(t, scale)


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    y = twice(pl.load(x, [0, 0], [64, 64]), factor=2.0)
