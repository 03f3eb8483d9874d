"""Rows of 32 bytes of another element type than the tile they are added to."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, h: pl.Tensor[[64, 16], pl.FP16], out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    r = pl.row_expand_add(tile, pl.load(h, [0, 0], [64, 16]))
    return out
