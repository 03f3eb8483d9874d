"""A loop that never gets anywhere."""

import tilewright.language as pl

EXPECTED = "DirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i in pl.range(0, 64, 0):
        pass
