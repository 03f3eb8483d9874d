"""Indices in memory for a tile in vector memory."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    rows = pl.mgather(x, index)
