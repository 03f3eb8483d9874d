"""A template that calls itself."""

import tilewright.language as pl

EXPECTED = "RecursiveCallError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def again(t):
    return again(t)


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    y = again(pl.load(x, [0, 0], [64, 64]))
