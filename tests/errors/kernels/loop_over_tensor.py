"""A loop over what has no elements that the compiler knows."""

import tilewright.language as pl

EXPECTED = "PlainRangeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for row in x:
        tile = pl.load(row, [0, 0], [16, 64])
