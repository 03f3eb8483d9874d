"""A mistake inside a template, shown with its caller."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def widen(t):
    return pl.add(t, pl.tile.full([64, 32], dtype=pl.FP32, value=0.0))


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    y = widen(tile)
