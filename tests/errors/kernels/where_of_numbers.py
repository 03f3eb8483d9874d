"""Numbers chosen by pl.where."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32], out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.where(n > 0, 1.0, 2.0)
