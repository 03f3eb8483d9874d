"""A loop over more numbers than an index has."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function
def kernel(n: pl.Scalar[pl.UINT64], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
    for i in pl.range(n):
        pl.write(out, [0], 1.0)
