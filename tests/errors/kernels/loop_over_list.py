"""A loop over a list."""

import tilewright.language as pl

EXPECTED = "PlainRangeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i in [0, 16, 32]:
        tile = pl.load(x, [i, 0], [16, 64])
