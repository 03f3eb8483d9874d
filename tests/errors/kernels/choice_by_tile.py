"""A conditional expression over a tile."""

import tilewright.language as pl

EXPECTED = "ConditionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = t if t > 0.0 else -t
