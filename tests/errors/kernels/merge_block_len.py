"""Runs that do not begin where sort32 puts them."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    pairs = pl.mrgsort(tile, block_len=96)
    return out
