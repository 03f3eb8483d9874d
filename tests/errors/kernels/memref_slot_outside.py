"""A slot of a place in memory that has fewer of them."""

import tilewright.language as pl

EXPECTED = "AnnotationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile: pl.Tile[[64, 64], pl.FP32, pl.MemRef("ring", slots=3)[3], pl.Mem.Vec] = pl.load(x, [0, 0], [64, 64])
