"""Tiles whose other axes are not as far valid."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64], [7, 37])
    u = pl.cat([pl.load(x, [0, 0], [64, 64], [64, 30]), t], axis=0)
