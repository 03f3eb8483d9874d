"""An atomic assemble into a tile."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.load(x, [0, 0], [16, 32])
    b = pl.assemble(a, a, [0, 0], atomic=pl.AtomicType.Add)
