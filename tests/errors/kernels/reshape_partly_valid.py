"""A reshape of a tile whose valid part would be no box."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.load(x, [0, 0], [16, 32], valid_shape=[3, 5])
    b = pl.reshape(a, [32, 16])
