"""A dynamic dim that no argument tells, read in the kernel."""

import tilewright.language as pl

EXPECTED = "UnboundSymbolError"


M = pl.dynamic("M")


@pl.function
def kernel(x: pl.Tensor[[M // 2, 64], pl.FP32]):
    for i in pl.range(M):
        pl.read(x, [i, 0])
