"""A slice of unknown size for a helper that needs to know it."""

import numpy as np

import tilewright.language as pl

EXPECTED = "NotStaticError"


@pl.jit.incore
def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [x.shape[0], x.shape[1]])
    return pl.store(t, [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, count: pl.Tensor, out: pl.Out[pl.Tensor]):
    part = pl.slice(x, [pl.read(count, [0]), 8], [0, 0])
    return copied(part, out)


kernel(np.zeros((4, 8), np.float32), np.array([2]), np.zeros((4, 8), np.float32))
