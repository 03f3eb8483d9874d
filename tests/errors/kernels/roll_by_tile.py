"""A shift that only the running program knows."""

import tilewright.language as pl

EXPECTED = "NotStaticError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.roll(t, pl.cast(pl.read(x, [0, 0]), pl.INT32))
