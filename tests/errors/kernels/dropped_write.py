"""An output rebound instead of written."""

import tilewright.language as pl

EXPECTED = "DroppedWriteWarning"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    out = pl.add(x, x)
    return out
