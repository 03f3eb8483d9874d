"""A loop condition that reads memory."""

import tilewright.language as pl

EXPECTED = "ConditionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    while pl.read(x, [0, 0]) > 0.0:
        pass
