"""A scalar taken apart."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function
def kernel(n: pl.Scalar[pl.INT32]):
    bit = n[0]
