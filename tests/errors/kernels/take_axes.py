"""Elements of a tensor of three axes, with indices along two of them."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(index: pl.Tensor[[8], pl.INT32], x: pl.Tensor[[4, 16, 64], pl.FP32], out: pl.Out[pl.Tensor[[8], pl.FP32]]):
    places = pl.load(index, [0], [8])
    return pl.store(x[places, places], [0], out)
