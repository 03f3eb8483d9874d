"""A template that returns from a branch."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def choose(t, flag):
    if flag:
        return t
    return pl.exp(t)


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    pass
