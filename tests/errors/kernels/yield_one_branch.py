"""One branch that yields and one that does not."""

import tilewright.language as pl

EXPECTED = "YieldMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    if n > 0:
        t = pl.yield_(pl.load(x, [0, 0], [64, 64]))
    else:
        pass
