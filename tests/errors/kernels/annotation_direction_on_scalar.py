"""A scalar as an output."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(n: pl.Out[pl.Scalar[pl.INT32]]):
    pass
