"""A scope placed nowhere."""

import tilewright.language as pl

EXPECTED = "DirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    with pl.at():
        tile = pl.load(x, [0, 0], [64, 64])
