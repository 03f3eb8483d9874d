"""The negation of a number."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"


@pl.function
def kernel(n: pl.Scalar[pl.INT32]):
    if not n:
        pass
