"""An assertion about all elements of a tile."""

import tilewright.language as pl

EXPECTED = "ConditionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    assert t > 0.0
