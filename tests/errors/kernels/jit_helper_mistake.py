"""A mistake in an inline helper, shown with its caller."""

import numpy as np

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"


@pl.jit.inline
def widened(x: pl.Tensor, out: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) + pl.tile.full([4, 4], dtype=pl.FP32, value=0.0)
        out = pl.store(t, [0, 0], out)
    return out


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return widened(x, out)


kernel(np.zeros((4, 8), np.float32))
