"""A NumPy function."""

import tilewright.language as pl
import numpy as np

EXPECTED = "UncallableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = np.zeros((64, 64))
