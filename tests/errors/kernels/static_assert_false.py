"""A static assertion that does not hold."""

import tilewright.language as pl

EXPECTED = "StaticAssertionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    rows, cols = x.shape
    pl.static_assert(rows % 48 == 0, "rows must be a multiple of 48")
