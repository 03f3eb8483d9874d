"""A local annotation that is not the type of its value."""

import tilewright.language as pl

EXPECTED = "AnnotationMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile: pl.Tile[[32, 64], pl.FP32] = pl.load(x, [0, 0], [64, 64])
