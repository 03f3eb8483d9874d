"""A name bound to another type in a loop."""

import tilewright.language as pl

EXPECTED = "ReassignmentError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    for i in pl.range(4):
        tile = pl.load(x, [0, 0], [32, 64])
