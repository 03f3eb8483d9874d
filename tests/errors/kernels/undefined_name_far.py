"""A name nobody has bound, close to nothing."""

import tilewright.language as pl

EXPECTED = "UndefinedNameError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(pl.exp(zzzzzz), [0, 0], out)
