"""Rows of a tile written by their indices."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    t[pl.arange(3)] = t[0:3]
