"""A loop variable added to a tile of floats."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    for i in pl.range(4):
        tile = pl.add(tile, i)
