"""A sum over elements of which some were never loaded."""

import tilewright.language as pl
from tilewright import ir

EXPECTED = "UndefinedElementError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 40], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    ones = pl.tile_full([16, 64], pl.FP32, 1.0)
    both = ones + pl.load(x, [0, 0], [16, 64], valid_shape=[16, 40])
    out = pl.store(pl.row_sum(both), [0, 0], out)


ir.compile(kernel)
