"""Elements for matrix memory without a scratch tensor."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    taken = pl.mgather(x, index, coalesce="elem", target_memory=pl.Mem.Mat)
