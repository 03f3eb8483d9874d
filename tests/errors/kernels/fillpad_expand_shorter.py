"""Padding to a smaller shape."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.fillpad_expand(pl.load(x, [0, 0], [16, 32]), [8, 64])
