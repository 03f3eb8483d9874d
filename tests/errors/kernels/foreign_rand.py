"""Random numbers inside a kernel."""

import tilewright.language as pl

EXPECTED = "UnknownOpError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.store(pl.rand([64, 64]), [0, 0], out)
