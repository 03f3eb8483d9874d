"""Python's print."""

import tilewright.language as pl

EXPECTED = "UncallableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    print(x)
