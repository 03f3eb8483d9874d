"""An op that does not take integers."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    half = pl.and_(tile, tile)
