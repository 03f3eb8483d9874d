"""A slice at a number that only the call tells, past the end."""

import numpy as np

import tilewright.language as pl

EXPECTED = "ExecutionError"


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], at: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        row = pl.read(at, [0])
        pl.store(pl.load(x[row : row + 1], [0, 0], [1, 16]), [0, 0], out)
    return out


kernel(np.ones((8, 16), np.float32), np.array([8], np.int32))
