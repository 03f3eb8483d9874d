"""Helpers that call each other."""

import numpy as np

import tilewright.language as pl

EXPECTED = "RecursiveCallError"


@pl.jit.opaque
def even(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
    return odd(x, n - 1, out)


@pl.jit.opaque
def odd(x: pl.Tensor, n: pl.INT32, out: pl.Out[pl.Tensor]):
    return even(x, n - 1, out)


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return even(x, 4, out)


kernel(np.zeros((4, 8), np.float32))
