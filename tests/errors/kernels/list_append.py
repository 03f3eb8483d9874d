"""A list that grows in place."""

import tilewright.language as pl

EXPECTED = "UnknownAttributeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    tiles = [tile]
    tiles.append(tile)
    return pl.store(tiles[1], [0, 0], out)
