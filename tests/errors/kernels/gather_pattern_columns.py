"""Columns that a pattern does not divide."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    taken = pl.tile.gather_mask(pl.load(x, [0, 0], [16, 63]), pl.tile.MaskPattern.P0001)
