"""A function called with a parameter it does not have."""

import tilewright.language as pl

EXPECTED = "ArgumentCountError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def copy(source: Matrix, target: pl.Out[Matrix]) -> Matrix:
    return pl.store(pl.load(source, [0, 0], [64, 64]), [0, 0], target)


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return copy(x, dest=out)
