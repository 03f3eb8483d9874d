"""Comparisons joined by a sign that binds tighter."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.where(t > 0 & t < 1, t, 0.0)
