"""A template that returns from a branch which the running program decides on."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def choose(t, flag):
    if flag:
        return t
    return pl.exp(t)


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INDEX], out: pl.Out[Matrix]):
    y = choose(pl.load(x, [0, 0], [64, 64]), n > 3)
