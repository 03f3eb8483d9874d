"""A list comprehension."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix):
    tiles = [pl.load(x, [i, 0], [16, 64]) for i in (0, 16)]
