"""Python's max of a tile and a number."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = max(t, 0.0)
