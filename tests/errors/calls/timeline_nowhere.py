"""A timeline below something that is no folder."""

import numpy as np

import tilewright.language as pl
from tilewright.runtime import RunConfig

EXPECTED = "TraceError"


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], out)
    return out


kernel(np.ones((8, 16), np.float32), config=RunConfig(trace="/dev/null/timeline.json"))
