"""A truth value for an extent."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.store(pl.load(x, [0, 0], [64, True]), [0, 0], out)
