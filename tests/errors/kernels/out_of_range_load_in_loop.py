"""A load whose every iteration lies past the end."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i in pl.range(64, 128, 16):
        tile = pl.load(x, [i, 0], [16, 64])
