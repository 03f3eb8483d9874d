"""A local annotation that is no type of the language."""

import tilewright.language as pl

EXPECTED = "AnnotationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile: complex = pl.load(x, [0, 0], [64, 64])
