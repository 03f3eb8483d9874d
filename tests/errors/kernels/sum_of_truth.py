"""A condition is added to a number."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    n = pl.add(pl.read(x, [0, 0]), True)
    return out
