"""A dynamic axis, asked for by a helper, where a tile needs its size."""

import numpy as np

import tilewright.language as pl

EXPECTED = "NotStaticError"
M = pl.dynamic("M")


@pl.jit.incore
def doubled(x: pl.Tensor, i: pl.INDEX, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, M)
    t = pl.load(x, [i, 0], [4, 8])
    return pl.store(t + t, [i, 0], out)


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [x.shape[0], 8])
        out = pl.store(t, [0, 0], out)
    return doubled(out, 0, out)


kernel(np.zeros((4, 8), np.float32))
