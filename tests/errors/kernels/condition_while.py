"""A number as the condition of a loop."""

import tilewright.language as pl

EXPECTED = "ConditionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    k = pl.const(4, pl.INT32)
    while k:
        k = k - 1
