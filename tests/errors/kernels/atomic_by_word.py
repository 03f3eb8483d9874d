"""A store that is told by a word how it combines."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 16], pl.FP32], out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]):
    a = pl.load(x, [0, 0], [16, 16])
    return pl.store(a, [0, 0], out, atomic="add")
