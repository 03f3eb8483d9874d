"""Rows taken by a tensor of indices that nobody has loaded."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(index: pl.Tensor[[8], pl.INT32], x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    return pl.store(pl.take(x, index), [0, 0], out)
