"""A first number of another type than those that follow."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(n: pl.Scalar[pl.INT32], out: pl.Out[Matrix]):
    t = pl.tile.ci(n, [1, 64], dtype=pl.INT16)
    return out
