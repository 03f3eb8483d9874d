"""A meaning of large indices that there is not."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    rows = pl.mgather(x, pl.load(index, [0, 0], [1, 64]), gather_oob="skip")
