"""An unrolled loop of a million turns."""

import tilewright.language as pl

EXPECTED = "DirectiveError"


@pl.function
def kernel(n: pl.Scalar[pl.INT32]):
    for i in pl.unroll(1_000_000):
        n = n + 1
    return n
