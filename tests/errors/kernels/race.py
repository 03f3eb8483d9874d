"""Turns of a parallel loop that read what their neighbours write."""

import numpy as np

import tilewright.language as pl
from tilewright.runtime import RunConfig

EXPECTED = "RaceError"


@pl.jit
def smooth(x: pl.InOut[pl.Tensor]):
    for r in pl.parallel(3):
        with pl.at(level=pl.Level.CORE_GROUP):
            above = pl.load(x, [r, 0], [1, 8])
            below = pl.load(x, [r + 1, 0], [1, 8])
            pl.store((above + below) * 0.5, [r, 0], x)
    return x


smooth(np.ones((4, 8), np.float32), config=RunConfig(checked=True))
