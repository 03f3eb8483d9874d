"""A tensor that would be repeated along two axes."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[1, 1, 32], pl.FP32], out: pl.Out[pl.Tensor[[4, 16, 32], pl.FP32]]):
    out = pl.expand_clone(x, out)
