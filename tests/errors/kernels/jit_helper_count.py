"""A helper called with too few arguments."""

import numpy as np

import tilewright.language as pl

EXPECTED = "ArgumentCountError"


@pl.jit.incore
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [4, 8])
    return pl.store(t + t, [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return doubled(x)


kernel(np.zeros((4, 8), np.float32))
