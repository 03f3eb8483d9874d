"""Random bits of a number of rounds nobody has looked into."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(out: pl.Out[Matrix]):
    t = pl.tile.random(1, 2, 3, 4, 5, 6, [64, 64], rounds=8)
    return out
