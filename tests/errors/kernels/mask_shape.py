"""A load by a mask of another shape."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix], n: pl.Scalar[pl.INDEX]):
    tile = pl.load(x, [0, 0], [64, 64], mask=pl.arange(32) < n)
    return pl.store(tile, [0, 0], out)
