"""A dynamic dim that no argument tells."""

import tilewright.language as pl

EXPECTED = "UnboundSymbolError"


M = pl.dynamic("M")


@pl.function
def kernel(x: pl.Tensor[[M * 2, 64], pl.FP32]):
    pass
