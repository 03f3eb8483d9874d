"""A fourth list without a third."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    pairs = pl.mrgsort(tile, tile, src3=tile, tmp=pl.create_tile([64, 192], dtype=pl.FP32))
    return out
