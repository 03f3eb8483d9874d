"""A window that ends outside its accumulator."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    acc = pl.create_l1([16, 64], pl.FP32)
    acc = pl.gather_row(acc, x, [12, 0], [0, 0], [8, 64])
