"""A pipelined loop of depth zero."""

import tilewright.language as pl

EXPECTED = "DirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i in pl.pipeline(4, stage=0):
        tile = pl.load(x, [i * 16, 0], [16, 64])
