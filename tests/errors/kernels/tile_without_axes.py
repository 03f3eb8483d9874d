"""A load of a tensor that has no axes."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"


@pl.function
def kernel(x: pl.Tensor[[], pl.FP32], out: pl.Out[pl.Tensor[[], pl.FP32]]):
    return pl.store(pl.load(x, [], []), [], out)
