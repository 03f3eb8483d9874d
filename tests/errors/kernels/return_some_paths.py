"""A function that returns a value on one path and none on another."""

import tilewright.language as pl

EXPECTED = "ReturnMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32], out: pl.Out[Matrix]):
    pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)
    for i in pl.range(n):
        return out
