"""A load from a tensor of more axes than it has entries."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Heads = pl.Tensor[[2, 4, 16, 8], pl.FP32]


@pl.function
def kernel(x: Heads, out: pl.Out[pl.Tensor[[16, 8], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [16, 8]), [0, 0], out)
