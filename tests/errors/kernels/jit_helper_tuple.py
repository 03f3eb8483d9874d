"""Tensors in a tuple for a helper that becomes a function."""

import numpy as np

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.jit.incore
def first(xs, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(xs[0], [0, 0], [4, 8]), [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return first((x, x), out)


kernel(np.zeros((4, 8), np.float32))
