"""A loop that carries an integer and yields a tile."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    for i, (total,) in pl.range(4, init_values=(n,)):
        total = pl.yield_(pl.load(x, [0, 0], [64, 64]))
