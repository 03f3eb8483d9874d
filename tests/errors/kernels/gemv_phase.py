"""A phase that no product has."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    row = pl.load(x, [0, 0], [1, 32])
    turned = pl.tile.transpose_view(pl.load(x, [0, 0], [16, 32]))
    r = pl.gemv(row, turned, acc_phase="last")
