"""A loop variable after its loop."""

import tilewright.language as pl

EXPECTED = "OutOfScopeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i in pl.range(4):
        pass
    tile = pl.load(x, [i, 0], [16, 64])
