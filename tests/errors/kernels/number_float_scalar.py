"""A running float among integers."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.INT32]


@pl.function
def kernel(x: Matrix, scale: pl.Scalar[pl.FP32], out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    scaled = tile * scale
