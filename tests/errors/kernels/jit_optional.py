"""None for a tensor that a helper cannot do without."""

import numpy as np

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.jit.incore
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [4, 8])
    return pl.store(t + t, [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, y: pl.Tensor | None = None, out: pl.Out[pl.Tensor] = None):
    return doubled(y, out)


kernel(np.zeros((4, 8), np.float32))
