"""Ones of a type that triangles have not."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(out: pl.Out[Matrix]):
    t = pl.tri(0, [64, 64], dtype=pl.INT64)
    return out
