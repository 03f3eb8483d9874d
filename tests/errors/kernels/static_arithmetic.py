"""Arithmetic on known values that Python refuses."""

import tilewright.language as pl

EXPECTED = "StaticEvaluationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    rows = x.shape[0] // 0
