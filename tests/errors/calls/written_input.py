"""A parameter that is no output, and is written."""

import numpy as np

import tilewright.language as pl

EXPECTED = "WrittenInputWarning"


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 16])
        pl.store(t * 2.0, [0, 0], x)
        pl.store(t, [0, 0], out)
    return out


doubled(np.ones((8, 16), np.float32))
