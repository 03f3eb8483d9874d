"""A kernel name that is no identifier."""

import tilewright.language as pl

EXPECTED = "DirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="my kernel"):
        tile = pl.load(x, [0, 0], [64, 64])
