"""A scatter along rows."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    made = pl.scatter(x, dim=0, index=index, src=x)
