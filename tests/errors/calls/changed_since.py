"""A number of the module that has changed since the kernel was compiled."""

import numpy as np

import tilewright.language as pl

EXPECTED = "DriftError"
factor = 2.0


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * factor, [0, 0], out)
    return out


kernel(np.ones((8, 16), np.float32))
factor = 3.0
kernel(np.ones((8, 16), np.float32))
