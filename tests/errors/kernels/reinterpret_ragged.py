"""Rows that are no whole number of the other elements."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.load(x, [0, 0], [16, 32], valid_shape=[16, 3])
    b = pl.reinterpret_view(a, pl.INT64)
