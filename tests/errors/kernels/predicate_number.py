"""A predicate that is a number."""

import tilewright.language as pl

EXPECTED = "DirectiveError"


@pl.function
def kernel(x: pl.Tensor[[4, 8], pl.FP32], flag: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    for i in pl.spmd(4, predicate=flag[0]):
        out = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)
    return out
