"""A scalar whose type is no type of the language."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(n: pl.Scalar[int]):
    pass
