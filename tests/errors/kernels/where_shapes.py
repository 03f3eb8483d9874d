"""A choice by a mask of another shape."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    part = pl.load(x, [0, 0], [64, 32])
    return pl.store(pl.where(part > 0, tile, 0.0), [0, 0], out)
