"""A with statement that opens no scope of the language."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix):
    with open("file"):
        tile = pl.load(x, [0, 0], [64, 64])
