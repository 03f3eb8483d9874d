"""A reduction as a method, as NumPy has it."""

import tilewright.language as pl

EXPECTED = "UnknownAttributeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(tile / tile.sum(axis=1), [0, 0], out)
