"""A tile that a kernel returns to Python."""

import numpy as np

import tilewright.language as pl

EXPECTED = "ReturnMismatchError"


@pl.jit
def kernel(x: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) * 2.0
    return t


kernel(np.zeros((4, 8), np.float32))
