"""A tile of counting numbers, as XLA makes one."""

import tilewright.language as pl

EXPECTED = "UnknownOpError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(tile + pl.iota(0, 64), [0, 0], out)
