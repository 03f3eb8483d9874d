"""Turns that may run in any order, and count on from each other."""

import tilewright.language as pl

EXPECTED = "DependentTurnsWarning"


@pl.jit
def kernel(x: pl.Tensor[[4, 16], pl.FP32], out: pl.Out[pl.Tensor[[4, 16], pl.FP32]]):
    row = 0
    for i in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [1, 16]), [i, 0], out)
        row = row + 1
    return out


kernel.compile()
