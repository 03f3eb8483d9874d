"""An output that nothing writes."""

import numpy as np

import tilewright.language as pl

EXPECTED = "DroppedWriteWarning"


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 16]) * 2.0
        pl.system.device_assert(pl.max(t) > 0.0, message="nothing is positive")


doubled(np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32))
