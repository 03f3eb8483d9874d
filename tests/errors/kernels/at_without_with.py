"""A scope that is not entered."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    pl.at(level=pl.Level.CORE_GROUP)
