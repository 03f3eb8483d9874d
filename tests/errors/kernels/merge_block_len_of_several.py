"""The length of runs, for several lists."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    pairs = pl.mrgsort(tile, tile, block_len=64)
    return out
