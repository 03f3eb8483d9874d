"""A condition of pl.while_ that reads memory."""

import tilewright.language as pl

EXPECTED = "ConditionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for (i,) in pl.while_(init_values=(0,)):
        pl.cond(pl.read(x, [i, 0]) > 0.0)
        i = pl.yield_(i + 1)
