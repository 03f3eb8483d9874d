"""Two integers that no type holds both of."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"


@pl.function
def kernel(n: pl.Scalar[pl.UINT64], m: pl.Scalar[pl.INT32]):
    r = n + m
