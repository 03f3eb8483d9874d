"""A plain Python function called from a kernel."""

import tilewright.language as pl

EXPECTED = "UncallableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


def helper(t):
    return pl.exp(t)


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.store(helper(pl.load(x, [0, 0], [64, 64])), [0, 0], out)
