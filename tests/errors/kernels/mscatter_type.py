"""Elements scattered into a tensor of another type."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    index = pl.mscatter(pl.load(x, [0, 0], [16, 64]), pl.load(index, [0, 0], [16, 64]), index)
