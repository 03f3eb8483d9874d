"""An axis that a parameter does not have."""

import numpy as np

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(x.shape[2]):
        pass
    return out


kernel(np.zeros((4, 8), np.float32))
