"""A name bound to another type in a branch."""

import tilewright.language as pl

EXPECTED = "ReassignmentError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    tile = pl.load(x, [0, 0], [64, 64])
    if n > 0:
        tile = pl.cast(tile, pl.FP16)
