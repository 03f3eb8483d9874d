"""A tensor is searched, with a scratch tile that it has no use for."""

import tilewright.language as pl

EXPECTED = "MixedKindsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    where = pl.col_argmin(x, pl.create_tile([64, 64], dtype=pl.FP32))
    return out
