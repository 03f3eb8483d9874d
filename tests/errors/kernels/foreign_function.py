"""NumPy's function for something that is an op."""

import numpy as np

import tilewright.language as pl

EXPECTED = "UncallableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.store(np.exp(pl.load(x, [0, 0], [64, 64])), [0, 0], out)
