"""An accumulated product of tiles that is asked to turn one."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    a = pl.load(x, [0, 0], [16, 32])
    r = pl.matmul_acc(a, a, a, b_trans=True)
