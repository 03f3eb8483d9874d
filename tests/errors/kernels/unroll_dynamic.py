"""An unrolled loop with a bound only the run knows."""

import tilewright.language as pl

EXPECTED = "DirectiveError"


@pl.function
def kernel(n: pl.Scalar[pl.INT32]):
    for i in pl.unroll(n):
        pass
