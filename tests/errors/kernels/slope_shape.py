"""Slopes of another shape than the elements they belong to."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    r = pl.prelu(tile, pl.load(x, [0, 0], [64, 32]), tile)
    return out
