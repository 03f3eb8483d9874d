"""A product whose inner sizes differ."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.load(x, [0, 0], [64, 64])
    b = pl.load(x, [0, 0], [32, 64])
    return pl.store(pl.matmul(a, b), [0, 0], out)
