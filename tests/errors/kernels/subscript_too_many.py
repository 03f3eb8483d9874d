"""A subscript with more entries than axes."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    s = x[0, 0, 0]
