"""A dynamic axis of a tensor that the kernel itself makes."""

import numpy as np

import tilewright.language as pl

EXPECTED = "OperandError"
M = pl.dynamic("M")


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    made = pl.create_tensor([16, 8], dtype=pl.FP32)
    made.bind_dynamic(0, M)
    return out


kernel(np.zeros((4, 8), np.float32))
