"""An axis with two names."""

import numpy as np

import tilewright.language as pl

EXPECTED = "DynamicConflictError"
M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, M)
    x.bind_dynamic(0, N)
    return out


kernel(np.zeros((4, 8), np.float32))
