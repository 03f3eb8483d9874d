"""A kernel that calls a plain Python function."""

import numpy as np

import tilewright.language as pl

EXPECTED = "UncallableError"


def plain(x, out):
    return out


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return plain(x, out)


kernel(np.zeros((4, 8), np.float32))
