"""A result taken from something that has none."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def nothing(source: Matrix):
    pass


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    done = nothing(x)
