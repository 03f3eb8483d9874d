"""A fraction chosen beside a mask, which has no room for it."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(pl.where(tile > 0.0, 1.5, tile < -1.0), [0, 0], out)
