"""Rows of a tensor replaced by those of a tile."""

import tilewright.language as pl

EXPECTED = "MixedKindsError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    out = pl.scatter_update(out, -2, pl.slice(index, [1, 16], [0, 0]), pl.load(x, [0, 0], [16, 64]))
