"""Blocks of a grid that count on from each other, although they run at the same time."""

import tilewright.language as pl
from tilewright import ir

EXPECTED = "DependentBlocksError"


@pl.function(type=pl.FunctionType.Orchestration)
def kernel(out: pl.InOut[pl.Tensor[[1, 8], pl.INT32]]):
    seen = 0
    for block in pl.spmd(4):
        seen += 1
        pl.write(out, [0, block], seen)


ir.compile(kernel)
