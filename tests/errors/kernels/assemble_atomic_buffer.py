"""An atomic assemble of a tensor that nobody computed."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.InOut[Matrix]):
    out = pl.assemble(out, x, [0, 0], atomic=pl.AtomicType.Add)
