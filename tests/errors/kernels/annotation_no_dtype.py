"""A tensor without an element type."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(x: pl.Tensor[[64, 64]]):
    pass
