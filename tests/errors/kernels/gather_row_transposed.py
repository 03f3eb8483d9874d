"""A valid part of a window that is turned."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    acc = pl.create_l1([64, 16], pl.FP32, transpose=True)
    acc = pl.gather_row(acc, x, [0, 0], [0, 0], [16, 64], transpose=True, valid_shape=[4, 64])
