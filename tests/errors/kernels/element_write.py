"""One element written with a subscript."""

import tilewright.language as pl

EXPECTED = "ElementWriteError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    out[0, 0] = 1.0
    return out
