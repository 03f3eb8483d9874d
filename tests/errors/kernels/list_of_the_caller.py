"""A helper that would change its caller's list."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def grow(tiles):
    tiles.append(tiles[0])


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tiles = [pl.load(x, [0, 0], [64, 64])]
    grow(tiles)
    return pl.store(tiles[1], [0, 0], out)
