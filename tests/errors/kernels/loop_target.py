"""A loop that binds its carried values without a tuple."""

import tilewright.language as pl

EXPECTED = "ParserSyntaxError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i, total in pl.range(4, init_values=(0,)):
        total = pl.yield_(total + i)
