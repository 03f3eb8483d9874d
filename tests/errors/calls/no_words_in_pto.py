"""A function that PTO does not have, written down as PTO text."""

import tilewright.language as pl

EXPECTED = "NoPtoError"


@pl.jit
def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tanh(pl.load(x, [0, 0], [16, 64])), [0, 0], out)


kernel.compile().as_pto()
