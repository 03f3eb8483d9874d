"""A column that an index left, times a vector."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.sum(t, axis=1) * t[:, 0]
