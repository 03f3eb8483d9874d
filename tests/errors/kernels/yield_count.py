"""A loop that carries one value and yields two."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    zero = pl.const(0, pl.INT32)
    for i, (total,) in pl.range(4, init_values=(zero,)):
        total, extra = pl.yield_(total, total)
