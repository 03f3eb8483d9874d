"""A mask from memory that has too few bits."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, bits: pl.Tensor[[64, 2], pl.UINT32], out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    r = pl.sels(pl.load(bits, [0, 0], [64, 1]), tile, scalar=0.0)
    return out
