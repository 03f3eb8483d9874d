"""A comprehension that the running program would filter."""

import tilewright.language as pl

EXPECTED = "NotStaticError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INDEX]):
    tiles = [pl.load(x, [i, 0], [16, 64]) for i in (0, 16) if i < n]
