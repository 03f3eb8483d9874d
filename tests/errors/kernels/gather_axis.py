"""An axis that the input does not have."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    taken = pl.gather(x, dim=2, index=index)
