"""Compute in an orchestration function outside any kernel scope."""

import tilewright.language as pl
from tilewright import ir

EXPECTED = "ControlPlaneComputeError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.Orchestration)
def kernel(x: Matrix, out: pl.Out[Matrix]) -> Matrix:
    y = pl.add(x, x)
    return pl.assemble(out, y, [0, 0])


ir.compile(kernel)
