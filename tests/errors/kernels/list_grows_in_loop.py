"""A list that a loop of the program would build up."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INDEX], out: pl.Out[Matrix]):
    tiles = []
    for i in range(n):
        tiles.append(pl.load(x, [i * 16, 0], [16, 64]))
    return pl.store(tiles[1], [0, 0], out)
