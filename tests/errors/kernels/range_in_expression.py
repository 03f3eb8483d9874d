"""A loop that is no loop."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    steps = pl.range(4)
