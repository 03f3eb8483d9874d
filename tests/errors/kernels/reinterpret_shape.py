"""A shape of its own for a tile that is valid in part."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.load(x, [0, 0], [16, 32], valid_shape=[16, 4])
    b = pl.reinterpret_view(a, pl.INT16, shape=[1024])
