"""A kernel that calls an entry."""

import numpy as np

import tilewright.language as pl

EXPECTED = "UncallableError"


@pl.jit
def other(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return out


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return other(x, out)


kernel(np.zeros((4, 8), np.float32))
