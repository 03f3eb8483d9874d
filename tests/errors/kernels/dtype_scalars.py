"""Scalar arithmetic between an integer and a float."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"


@pl.function
def kernel(n: pl.Scalar[pl.INT32], s: pl.Scalar[pl.FP32]):
    r = n + s
