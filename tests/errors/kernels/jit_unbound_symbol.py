"""A dynamic name that no axis has."""

import numpy as np

import tilewright.language as pl

EXPECTED = "UnboundSymbolError"
M = pl.dynamic("M")


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [i, 0], [4, 8]), [i, 0], out)
    return out


kernel(np.zeros((4, 8), np.float32))
