"""A dynamic axis that is not there."""

import numpy as np

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
M = pl.dynamic("M")


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(2, M)
    return out


kernel(np.zeros((4, 8), np.float32))
