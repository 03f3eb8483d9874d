"""Elements compared to a scalar of another type."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    places, counts = pl.gather(x, kvalue=pl.read(index, [0, 0]), cmp_mode="gt", out_cols=8)
