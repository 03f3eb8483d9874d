"""An index that is no integer."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    row = x[0.5, :]
