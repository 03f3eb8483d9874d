"""A part that reaches past its tile."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    part = pl.tile.extract(pl.load(x, [0, 0], [16, 32]), 12, 0, [8, 32], target_memory=pl.Mem.Left)
