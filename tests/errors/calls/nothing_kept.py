"""A kernel that was never compiled, where only kept ones may run."""

import os

import numpy as np

import tilewright.language as pl

EXPECTED = "RunOnlyError"


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * 7.25, [0, 0], out)
    return out


os.environ["TILEWRIGHT_RUN_ONLY"] = "1"
kernel(np.ones((8, 16), np.float32))
