"""A view of a partly valid tensor that does not say how much of it is valid."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    part = pl.slice(x, [16, 32], [0, 0], valid_shape=[4, 32])
    v = pl.tensor.view(part, [1, 512])
