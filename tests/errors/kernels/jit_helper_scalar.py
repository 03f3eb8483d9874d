"""A tensor where a helper takes a number."""

import numpy as np

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.jit.incore
def scaled(x: pl.Tensor, factor: pl.FP32, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [4, 8]) * factor, [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return scaled(x, out, out)


kernel(np.zeros((4, 8), np.float32))
