"""Numbers that count down a column."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.tile.ci(0, [64, 1])
    return out
