"""A tensor annotated as what is passed for it."""

import numpy as np

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.jit
def kernel(x: np.ndarray, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)


kernel(np.zeros((4, 8), np.float32))
