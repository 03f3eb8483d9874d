"""An extent of an axis that is not there."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    depth = x.shape[2]
