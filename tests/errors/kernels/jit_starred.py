"""A kernel with any number of parameters."""

import numpy as np

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.jit
def kernel(*xs: pl.Tensor):
    return xs[0]


kernel(np.zeros((4, 8), np.float32))
