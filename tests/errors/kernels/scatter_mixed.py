"""A scatter by index and by pattern at once."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    made = pl.scatter(x, dim=-1, index=index, src=x, mask_pattern=1, dst=x)
