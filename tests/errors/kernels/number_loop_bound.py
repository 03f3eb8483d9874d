"""A loop of more turns than 64 bits count."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function
def kernel(out: pl.Out[pl.Tensor[[64], pl.FP32]]):
    for i in pl.range(2**64 + 3):
        pl.write(out, [0], 1.0)
